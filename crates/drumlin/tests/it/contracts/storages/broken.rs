//! A storage that breaks one rule of the contract.

use std::ops::Range;
use std::time::Duration;

use bytes::Bytes;
use drumlin::base::Timestamp;
use drumlin::storage::{ObjectMeta, SimBucket, Storage, Tag, WriteMode};
use drumlin::{Error, ErrorKind, Result};

/// What is wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    DropsTheLastPart,
    SaysUnavailable,
    NamesNothing,
    CreateReplaces,
    ReplaceKeepsTheEnd,
    OnceConflicts,
    CutsWhatIsLarge,
    SortsRanges,
    ClipsRanges,
    FailsTogether,
    LivesIn1970,
    ListsAllBelow,
    ListsNamesakes,
    ListsNothingAtTheTop,
    RefusesToDeleteNothing,
    DeletesNamesakes,
    ListsAThousand,
    DeletesAThousand,
    FoldsCase,
    HasOneTag,
    KnowsNoTag,
    IgnoresTags,
    LeavesFiles,
    LooksBeforeItPuts,
    ReplacesInTwoSteps,
    TellsTheTagLater,
}

/// Each rule, and the check that has to notice.
pub const RULES: [(Rule, &str); 27] = [
    (Rule::DropsTheLastPart, "what is put comes back"),
    (Rule::SaysUnavailable, "what is missing is not found"),
    (Rule::NamesNothing, "what is missing is not found"),
    (Rule::CreateReplaces, "create keeps what is there"),
    (Rule::ReplaceKeepsTheEnd, "replace replaces all of it"),
    (Rule::OnceConflicts, "once may be repeated"),
    (Rule::CutsWhatIsLarge, "a large object comes back"),
    (Rule::SortsRanges, "ranges come in the order asked"),
    (Rule::ClipsRanges, "ranges beyond the end are corrupt"),
    (Rule::FailsTogether, "each of many objects has its own answer"),
    (Rule::LivesIn1970, "the time of writing is plausible"),
    (Rule::ListsAllBelow, "a list names what is directly in a folder"),
    (Rule::ListsNamesakes, "a list names what is directly in a folder"),
    (Rule::ListsNothingAtTheTop, "a list names what is directly in a folder"),
    (Rule::RefusesToDeleteNothing, "what is deleted is gone, and nothing else"),
    (Rule::DeletesNamesakes, "what is deleted is gone, and nothing else"),
    (Rule::ListsAThousand, "more objects than one request takes"),
    (Rule::DeletesAThousand, "more objects than one request takes"),
    (Rule::FoldsCase, "names are taken as they are"),
    (Rule::HasOneTag, "a tag tells one content from another"),
    (Rule::KnowsNoTag, "a tag tells one content from another"),
    (Rule::IgnoresTags, "a put on a tag wants that very content"),
    (Rule::LeavesFiles, "puts leave nothing unfinished"),
    (Rule::LooksBeforeItPuts, "of racing creates one wins"),
    (Rule::LooksBeforeItPuts, "no count is lost"),
    (Rule::ReplacesInTwoSteps, "a reader sees the old bytes or the new ones"),
    (Rule::TellsTheTagLater, "a reader sees the old bytes or the new ones"),
];

const LARGE: usize = 16 << 20;

#[derive(Debug)]
pub struct Broken(pub SimBucket, pub Rule);

impl Broken {
    fn is(&self, rule: Rule) -> bool {
        self.1 == rule
    }

    fn inner(&self) -> &SimBucket {
        &self.0
    }

    fn name(&self, name: &str) -> String {
        if self.is(Rule::FoldsCase) { name.to_lowercase() } else { name.to_owned() }
    }

    fn answer<T>(&self, answer: Result<T>) -> Result<T> {
        answer.map_err(|e| match self.1 {
            Rule::SaysUnavailable => Error::unavailable(e.message()),
            Rule::NamesNothing => Error::new(e.kind(), "it did not work"),
            _ => e,
        })
    }

    /// Lets others come between two steps.
    fn dawdle(&self) {
        std::thread::sleep(Duration::from_millis(2));
    }
}

impl Storage for Broken {
    passes_on! { inner: list_folders }

    fn get(&self, name: &str) -> Result<Bytes> {
        self.answer(self.0.get(&self.name(name)))
    }

    fn get_ranges(&self, name: &str, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let mut ranges = ranges.to_vec();
        match self.1 {
            Rule::SortsRanges => ranges.sort_by_key(|range| range.start),
            Rule::ClipsRanges => {
                let end = self.0.get(name)?.len() as u64;
                ranges.iter_mut().for_each(|range| *range = range.start.min(end)..range.end.min(end));
            }
            _ => {}
        }
        self.answer(self.0.get_ranges(&self.name(name), &ranges))
    }

    fn get_ranges_of(&self, wanted: &[(String, Vec<Range<u64>>)]) -> Vec<Result<Vec<Bytes>>> {
        let answers: Vec<_> = wanted.iter().map(|(name, ranges)| self.get_ranges(name, ranges)).collect();
        match answers.iter().find_map(|answer| answer.as_ref().err()) {
            Some(e) if self.is(Rule::FailsTogether) => {
                answers.iter().map(|_| Err(Error::new(e.kind(), e.message()))).collect()
            }
            _ => answers,
        }
    }

    fn written_at(&self, name: &str) -> Result<Option<Timestamp>> {
        let time = self.0.written_at(name)?;
        Ok(if self.is(Rule::LivesIn1970) { Some(Timestamp(0)) } else { time })
    }

    fn put(&self, name: &str, parts: &[Bytes], mode: WriteMode) -> Result<()> {
        let name = &self.name(name);
        let there = self.0.content(name);
        let whole = Bytes::from(parts.concat());
        match (self.1, mode) {
            (Rule::DropsTheLastPart, _) => self.0.put(name, &parts[..parts.len().saturating_sub(1)], mode),
            (Rule::CutsWhatIsLarge, _) => self.0.put(name, &[whole.slice(..whole.len().min(LARGE))], mode),
            (Rule::CreateReplaces, WriteMode::Create) => self.0.put(name, parts, WriteMode::Replace),
            (Rule::OnceConflicts, WriteMode::Once) if there.is_some() => {
                Err(Error::conflict(format!("{name} is there")))
            }
            (Rule::ReplaceKeepsTheEnd, WriteMode::Replace) => {
                let end = there.map(|there| there.slice(whole.len().min(there.len())..)).unwrap_or_default();
                self.0.put(name, &[whole, end], mode)
            }
            (Rule::LooksBeforeItPuts, WriteMode::Create) if there.is_none() => {
                self.dawdle();
                self.0.put(name, parts, WriteMode::Replace)
            }
            (Rule::ReplacesInTwoSteps, WriteMode::Replace) => {
                self.0.put(name, &[whole.slice(..whole.len() / 2)], mode)?;
                self.dawdle();
                self.0.put(name, parts, mode)
            }
            _ => self.answer(self.0.put(name, parts, mode)),
        }
    }

    fn get_tagged(&self, name: &str, known: Option<&Tag>) -> Result<Option<(Bytes, Tag)>> {
        match self.1 {
            Rule::TellsTheTagLater => {
                let bytes = self.0.get(name)?;
                self.dawdle();
                Ok(self.0.get_tagged(name, known)?.map(|(_, tag)| (bytes, tag)))
            }
            Rule::KnowsNoTag => self.0.get_tagged(name, None),
            Rule::HasOneTag => {
                let tag = Tag("1".into());
                self.0.get(name).map(|bytes| (known != Some(&tag)).then_some((bytes, tag)))
            }
            _ => self.answer(self.0.get_tagged(&self.name(name), known)),
        }
    }

    fn put_if_match(&self, name: &str, parts: &[Bytes], known: Option<&Tag>) -> Result<Tag> {
        let lying = self.0.lying();
        match self.1 {
            Rule::IgnoresTags => lying.put_if_match(name, parts, known),
            Rule::LooksBeforeItPuts => {
                let there = match self.0.get_tagged(name, None) {
                    Err(e) if e.kind() == ErrorKind::NotFound => None,
                    there => there?.map(|(_, tag)| tag),
                };
                if there.as_ref() != known {
                    return Err(Error::conflict(format!("{name} was replaced")));
                }
                self.dawdle();
                lying.put_if_match(name, parts, known)
            }
            _ => self.answer(self.0.put_if_match(&self.name(name), parts, known)),
        }
    }

    fn delete_many(&self, names: &[String]) -> Vec<Result<()>> {
        match self.1 {
            Rule::RefusesToDeleteNothing => {
                let delete =
                    |name: &String| self.0.get(name).map(|_| drop(self.0.delete_many(std::slice::from_ref(name))));
                names.iter().map(delete).collect()
            }
            Rule::DeletesNamesakes => {
                let all = self.0.objects().into_iter().map(|(name, _)| name);
                let alike: Vec<String> = all.filter(|name| names.iter().any(|n| name.starts_with(n))).collect();
                drop(self.0.delete_many(&alike));
                names.iter().map(|_| Ok(())).collect()
            }
            Rule::DeletesAThousand => {
                drop(self.0.delete_many(&names[..names.len().min(1000)]));
                names.iter().map(|_| Ok(())).collect()
            }
            _ => self.0.delete_many(&names.iter().map(|name| self.name(name)).collect::<Vec<_>>()),
        }
    }

    fn list(&self, folder: &str) -> Result<Vec<ObjectMeta>> {
        let all = || self.0.objects().into_iter().map(|(name, bytes)| ObjectMeta { name, bytes });
        let below = format!("{folder}/");
        Ok(match self.1 {
            Rule::ListsAllBelow => all().filter(|object| object.name.starts_with(&below)).collect(),
            Rule::ListsNamesakes => all().filter(|object| object.name.starts_with(folder)).collect(),
            Rule::ListsNothingAtTheTop => {
                self.0.list(folder)?.into_iter().filter(|object| object.name.starts_with(&below)).collect()
            }
            Rule::ListsAThousand => self.0.list(folder)?.into_iter().take(1000).collect(),
            _ => self.0.list(folder)?,
        })
    }

    fn unfinished(&self, folder: &str) -> Result<Vec<ObjectMeta>> {
        let left = ObjectMeta { name: format!("{folder}/7.blk.1-1.tmp"), bytes: 0 };
        Ok(if self.is(Rule::LeavesFiles) { vec![left] } else { Vec::new() })
    }
}
