//! A log that breaks one rule of the contract.

use drumlin::Result;
use drumlin::base::Seq;
use drumlin::log::{Appended, Base, CommitLog, Durable, Entry, News, Opened, Referred};
use parking_lot::Mutex;

/// What is wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    LosesTheLast,
    LosesWhatIsEmpty,
    TakesAnyNumber,
    WritesWhenClosed,
    SyncsNothing,
    RepeatsNews,
    TellsNoNews,
    EndsEarly,
    CutsNothing,
    CutsTooMuch,
    CountsNothing,
    CountsForEver,
    ForgetsTheSnapshot,
    TakesMoreWhenClosed,
    TakesMoreWhenPoisoned,
    ShowsHalves,
    SaysDoneInstead,
    KnowsBetter,
    TakesAnySnapshot,
    NeedsNothing,
    /// Its storage takes any put.
    SharesNoOrder,
}

/// Each rule, and the check that has to notice.
pub const RULES: [(Rule, &str); 21] = [
    (Rule::LosesTheLast, "entries come back as they were"),
    (Rule::LosesWhatIsEmpty, "payloads of every size come back"),
    (Rule::TakesAnyNumber, "entries are numbered without gaps"),
    (Rule::WritesWhenClosed, "an entry is there though the log was not closed"),
    (Rule::SyncsNothing, "what was synced is durable"),
    (Rule::RepeatsNews, "what others add is news once"),
    (Rule::TellsNoNews, "what others add is news once"),
    (Rule::EndsEarly, "the end can be read by itself"),
    (Rule::CutsNothing, "a snapshot cuts the log"),
    (Rule::CutsTooMuch, "a snapshot cuts the log"),
    (Rule::CountsNothing, "bytes are counted"),
    (Rule::CountsForEver, "bytes are counted"),
    (Rule::ForgetsTheSnapshot, "a log may begin with a snapshot"),
    (Rule::TakesMoreWhenClosed, "a closed log takes nothing more"),
    (Rule::TakesMoreWhenPoisoned, "a poisoned log takes nothing more"),
    (Rule::ShowsHalves, "readers see whole entries while one writes"),
    (Rule::SaysDoneInstead, "a handle learns before it adds"),
    (Rule::KnowsBetter, "what a handle knows can be set"),
    (Rule::TakesAnySnapshot, "a snapshot never takes the place of one unseen"),
    (Rule::NeedsNothing, "the log says which objects it needs"),
    (Rule::SharesNoOrder, "of racing entries none is lost"),
];

impl Rule {
    /// What becomes of entries that are read.
    pub fn spoil(self, entries: &mut Vec<Entry>) {
        match self {
            Self::LosesTheLast => drop(entries.pop()),
            Self::LosesWhatIsEmpty => entries.retain(|entry| !entry.payload.is_empty()),
            Self::ShowsHalves => {
                if let Some(last) = entries.last_mut() {
                    last.payload.truncate(last.payload.len() / 2);
                }
            }
            _ => {}
        }
    }
}

pub struct BrokenLog {
    inner: Box<dyn CommitLog>,
    rule: Rule,
    /// What is written when it is closed.
    held: Mutex<Vec<Entry>>,
    last_news: Mutex<Option<News>>,
    counted: Mutex<u64>,
}

impl BrokenLog {
    pub fn new(log: impl CommitLog + 'static, rule: Rule) -> Self {
        Self {
            inner: Box::new(log),
            rule,
            held: Mutex::default(),
            last_news: Mutex::default(),
            counted: Mutex::default(),
        }
    }

    fn is(&self, rule: Rule) -> bool {
        self.rule == rule
    }
}

impl CommitLog for BrokenLog {
    fn append(&self, entry: &Entry, durable: Durable) -> Result<Appended> {
        *self.counted.lock() += entry.payload.len() as u64;
        match self.rule {
            Rule::SyncsNothing => self.inner.append(entry, Durable::AfterSync),
            Rule::WritesWhenClosed => {
                self.held.lock().push(entry.clone());
                Ok(Appended::Done)
            }
            Rule::TakesAnyNumber => {
                let last = self.inner.read()?.entries.last().map_or(Seq(0), |entry| entry.seq);
                self.inner.append(&Entry { seq: last.next(), ..entry.clone() }, durable)
            }
            Rule::SaysDoneInstead => self.inner.append(entry, durable).map(|_| Appended::Done),
            _ => self.inner.append(entry, durable),
        }
    }

    fn refresh(&self) -> Result<Option<News>> {
        let news = self.inner.refresh()?;
        if self.is(Rule::TellsNoNews) {
            return Ok(None);
        }
        let mut last = self.last_news.lock();
        if news.is_some() {
            *last = news.clone();
        }
        Ok(if self.is(Rule::RepeatsNews) { last.clone() } else { news })
    }

    fn knows(&self, last: Seq) {
        if !self.is(Rule::KnowsBetter) {
            self.inner.knows(last);
        }
    }

    fn read(&self) -> Result<Opened> {
        let mut opened = self.inner.read()?;
        self.rule.spoil(&mut opened.entries);
        opened.entries.extend(self.held.lock().clone());
        Ok(opened)
    }

    fn read_after(&self, after: Seq) -> Result<Opened> {
        let mut opened = self.inner.read_after(after)?;
        if self.is(Rule::EndsEarly) {
            opened.entries.pop();
        }
        Ok(opened)
    }

    fn sync(&self) -> Result<()> {
        if self.is(Rule::SyncsNothing) { Ok(()) } else { self.inner.sync() }
    }

    fn rebase(&self, before: Option<Base>, base: Base, bytes: u64) -> Result<bool> {
        match self.rule {
            Rule::CutsNothing => Ok(true),
            Rule::CutsTooMuch => self.inner.rebase(before, Base { from: base.seq.next(), ..base }, bytes),
            Rule::TakesAnySnapshot => {
                self.inner.refresh()?;
                self.inner.rebase(self.inner.base(), base, bytes)
            }
            _ => self.inner.rebase(before, base, bytes),
        }
    }

    fn close(&self) -> Result<()> {
        for entry in self.held.lock().drain(..) {
            self.inner.append(&entry, Durable::Now)?;
        }
        if self.is(Rule::TakesMoreWhenClosed) { Ok(()) } else { self.inner.close() }
    }

    fn poison(&self) {
        if !self.is(Rule::TakesMoreWhenPoisoned) {
            self.inner.poison();
        }
    }

    fn bytes(&self) -> u64 {
        match self.rule {
            Rule::CountsNothing => 0,
            Rule::CountsForEver => *self.counted.lock(),
            _ => self.inner.bytes(),
        }
    }

    fn base(&self) -> Option<Base> {
        self.inner.base().filter(|_| !self.is(Rule::ForgetsTheSnapshot))
    }

    fn is_shared(&self) -> bool {
        self.inner.is_shared()
    }

    fn referred(&self) -> Option<Referred> {
        let referred = self.inner.referred()?;
        Some(if self.is(Rule::NeedsNothing) { Referred { chunks: Vec::new(), ..referred } } else { referred })
    }
}
