//! The workloads: what each round does with each side in turn.

use crate::Result;
use crate::art::Art;
use crate::data::{Question, Rows, Shape};
use crate::measure::{self, WRITE_BATCH};
use crate::memtable::MemtableSide;
use crate::plan::{ARROW, MEMTABLE, Plan, ROCKS, SIDES, STORE, VIEW};
use crate::report::{Sheet, Unit, Workload};
use crate::rocks::Rocks;
use crate::side::Side;
use crate::store::{ArrowSide, StoreSide, ViewSide};

/// The batch that most workloads look up.
const BATCH: usize = 32;
/// The sides of the table about `artmap`.
pub const ART_SIDES: [&str; 3] = ["artmap", "artmap, versions", "Drumlin (a)"];
const ART_PLAIN: usize = 0;
const ART_VERSIONED: usize = 1;
const ART_DRUMLIN: usize = 2;

/// A side filled with all rows, and its place in a table.
type Filled = (usize, Box<dyn Side>);

/// Items in the order of a round: a different one is first each time.
fn in_turn<T>(mut things: Vec<T>, round: usize) -> Vec<T> {
    let count = things.len().max(1);
    things.rotate_left(round % count);
    things
}

/// One round with some rows, with its own sides.
struct Round<'a> {
    plan: &'a Plan,
    rows: &'a Rows,
    number: usize,
    /// The prefix of workload names.
    prefix: String,
    filled: Vec<Filled>,
}

/// Runs all workloads with keys of 16 random bytes.
pub fn bench(plan: &Plan, sheet: &mut Sheet) -> Result<()> {
    if plan.wants_shapes_only() {
        return Ok(());
    }
    let rows = Rows::new(Shape::Random, plan.keys);
    let (present, absent) = (Question::present(&rows, plan.asked()), Question::absent(&rows, plan.asked()));
    let bloom = bloom(plan, &rows)?;
    for number in 0..plan.rounds {
        eprintln!("round {} of {}", number + 1, plan.rounds);
        let round = Round::fill(plan, &rows, number, String::new(), sheet)?;
        round.look_ups(&present, sheet)?;
        round.latencies(&present, sheet)?;
        round.absent(bloom.as_ref(), &absent, sheet)?;
        round.scan(sheet)?;
        round.bytes(sheet)?;
        // Last, because it makes all of them larger.
        round.beside_writer(&present, sheet)?;
    }
    Ok(())
}

/// Runs some workloads with keys of every shape, and compares with `artmap`.
pub fn bench_shapes(plan: &Plan, sheet: &mut Sheet, art_sheet: &mut Sheet) -> Result<()> {
    for shape in Shape::ALL.into_iter().filter(|shape| plan.wants_shape(shape.name())) {
        let rows = Rows::new(shape, plan.keys);
        let question = Question::present(&rows, plan.asked());
        for number in 0..plan.rounds {
            eprintln!("{}: round {} of {}", shape.name(), number + 1, plan.rounds);
            let round = Round::fill(plan, &rows, number, format!("{}: ", shape.name()), sheet)?;
            round.look_up(&question, BATCH, 1, "10x", sheet)?;
            round.bytes(sheet)?;
            round.art(&question, art_sheet)?;
        }
    }
    Ok(())
}

/// RocksDB with a Bloom filter, if requested. It makes the filter a tenth of the memtable's size, so the memtable gets
/// less room here, and the filter is no larger than needed.
fn bloom(plan: &Plan, rows: &Rows) -> Result<Option<Rocks>> {
    if !plan.has(SIDES[ROCKS].1) || !plan.wants(&absent_with_bloom().name) {
        return Ok(None);
    }
    let rocks = Rocks::open((rows.len() * 256).max(64 << 20), true)?;
    measure::fill(&rocks, rows)?;
    rocks.check_in_memory(rows.len())?;
    Ok(Some(rocks))
}

fn absent_with_bloom() -> Workload {
    Workload::rate(format!("absent, batch {BATCH}, Bloom filter"), "5x")
}

impl<'a> Round<'a> {
    /// Creates sides and fills them, one after the other.
    fn fill(plan: &'a Plan, rows: &'a Rows, number: usize, prefix: String, sheet: &mut Sheet) -> Result<Self> {
        // Room for all rows, for overwrites, and a lot more.
        let write_buffer = (rows.len() * 1024).max(256 << 20);
        let mut round = Self { plan, rows, number, prefix, filled: Vec::new() };
        for at in in_turn(vec![ROCKS, MEMTABLE, STORE], number) {
            match at {
                ROCKS if plan.has(SIDES[ROCKS].1) => {
                    round.fill_side(at, Box::new(Rocks::open(write_buffer, false)?), sheet)?;
                }
                MEMTABLE if plan.has(SIDES[MEMTABLE].1) => {
                    round.fill_side(at, Box::new(MemtableSide::default()), sheet)?;
                }
                STORE if [STORE, VIEW, ARROW].iter().any(|at| plan.has(SIDES[*at].1)) => {
                    let store = StoreSide::open()?;
                    round.fill_side(at, Box::new(store.clone()), sheet)?;
                    round.filled.push((VIEW, Box::new(ViewSide(store.clone()))));
                    round.filled.push((ARROW, Box::new(ArrowSide(store))));
                }
                _ => {}
            }
        }
        round.filled.retain(|(at, _)| plan.has(SIDES[*at].1));
        round.filled.sort_by_key(|(at, _)| *at);
        Ok(round)
    }

    fn fill_side(&mut self, at: usize, side: Box<dyn Side>, sheet: &mut Sheet) -> Result<()> {
        let rate = measure::fill(&*side, self.rows)?;
        side.check_in_memory(self.rows.len())?;
        sheet.add(&self.insert(), at, rate);
        self.filled.push((at, side));
        Ok(())
    }

    fn insert(&self) -> Workload {
        Workload::rate(format!("{}insert, {WRITE_BATCH} at a time", self.prefix), "4x")
    }

    /// Lets each side in turn do something that may give a sample.
    fn each(
        &self,
        workload: &Workload,
        sheet: &mut Sheet,
        sample: impl Fn(&dyn Side) -> Result<Option<f64>>,
    ) -> Result<()> {
        if !self.plan.wants(&workload.name) {
            return Ok(());
        }
        for (at, side) in in_turn(self.filled.iter().collect(), self.number) {
            let told = sample(&**side).map_err(|e| format!("{}, {}: {e}", workload.name, SIDES[*at].0))?;
            told.into_iter().for_each(|sample| sheet.add(workload, *at, sample));
        }
        Ok(())
    }

    fn look_up(
        &self,
        question: &Question<'_>,
        batch: usize,
        threads: usize,
        target: &'static str,
        sheet: &mut Sheet,
    ) -> Result<()> {
        let what = if batch == 1 { "single get".to_owned() } else { format!("batch {batch}") };
        let threads_text = if threads == 1 { "1 thread".to_owned() } else { format!("{threads} threads") };
        let workload = Workload::rate(format!("{}{what}, {threads_text}", self.prefix), target);
        let limits = self.plan.limits;
        self.each(&workload, sheet, |side| measure::look_up(side, question, batch, threads, limits).map(Some))
    }

    fn look_ups(&self, question: &Question<'_>, sheet: &mut Sheet) -> Result<()> {
        for (batch, target) in [(1, "5x"), (2, "8x"), (8, "20x"), (32, "20x"), (64, "20x")] {
            for threads in [1, 2] {
                self.look_up(question, batch, threads, target, sheet)?;
            }
        }
        Ok(())
    }

    fn latencies(&self, question: &Question<'_>, sheet: &mut Sheet) -> Result<()> {
        let name = |part: &str| format!("batch {BATCH}, {part} of its time, us");
        let parts = [("p50", 0.5), ("p99", 0.99)];
        if !parts.iter().any(|(part, _)| self.plan.wants(&name(part))) {
            return Ok(());
        }
        for (at, side) in in_turn(self.filled.iter().collect(), self.number) {
            let times = measure::times(&**side, question, BATCH, self.plan.limits)?;
            for (part, share) in parts {
                let workload = Workload { name: name(part), unit: Unit::Seconds, target: "" };
                sheet.add(&workload, *at, measure::percentile(&times, share));
            }
        }
        Ok(())
    }

    /// Look-ups of missing keys; RocksDB without a Bloom filter, and with one.
    fn absent(&self, bloom: Option<&Rocks>, question: &Question<'_>, sheet: &mut Sheet) -> Result<()> {
        let rate = |side: &dyn Side| measure::look_up(side, question, BATCH, 1, self.plan.limits);
        let plain = Workload::rate(format!("absent, batch {BATCH}"), "5x");
        self.each(&plain, sheet, |side| rate(side).map(Some))?;
        let Some(bloom) = bloom else { return Ok(()) };
        for (at, side) in in_turn(self.filled.iter().collect(), self.number) {
            let side: &dyn Side = if *at == ROCKS { bloom } else { &**side };
            sheet.add(&absent_with_bloom(), *at, rate(side)?);
        }
        Ok(())
    }

    fn scan(&self, sheet: &mut Sheet) -> Result<()> {
        self.each(&Workload::rate("scan of all, in order", "4x"), sheet, |side| measure::scan(side, self.rows))
    }

    fn bytes(&self, sheet: &mut Sheet) -> Result<()> {
        let (rows, name) = (self.rows.len() as f64, format!("{}bytes a key", self.prefix));
        let workload = Workload { name, unit: Unit::Bytes, target: "<=1.3x" };
        self.each(&workload, sheet, |side| Ok(side.bytes()?.map(|bytes| bytes as f64 / rows)))
    }

    fn beside_writer(&self, question: &Question<'_>, sheet: &mut Sheet) -> Result<()> {
        let reads = Workload::rate(format!("batch {BATCH}, beside a writer"), "20x");
        let writes = Workload::rate(format!("  its overwrites, {WRITE_BATCH} at a time"), "");
        if !self.plan.wants(&reads.name) {
            return Ok(());
        }
        let again = self.rows.again(100 * WRITE_BATCH);
        for (at, side) in in_turn(self.filled.iter().collect(), self.number) {
            let (read, written) = measure::look_up_beside_writer(&**side, question, BATCH, &again, self.plan.beside)?;
            sheet.add(&reads, *at, read);
            sheet.add(&writes, *at, written);
            side.check_in_memory(self.rows.len())?;
        }
        Ok(())
    }

    /// `artmap`, compared with the memtable.
    fn art(&self, question: &Question<'_>, sheet: &mut Sheet) -> Result<()> {
        if !self.plan.has("artmap") || !Art::takes(self.rows.shape) {
            return Ok(());
        }
        let name = |what: &str| format!("{}{what}", self.prefix);
        let insert = Workload::rate(name("insert"), "");
        let get = Workload::rate(name("single get"), "");
        let bytes = Workload { name: name("bytes a key"), unit: Unit::Bytes, target: "" };
        let fresh = MemtableSide::default();
        let (plain, versioned) = (Art::plain(self.rows.len()), Art::versioned(self.rows.len()));
        let sides: Vec<(usize, &dyn Side)> =
            vec![(ART_PLAIN, &plain), (ART_VERSIONED, &versioned), (ART_DRUMLIN, &fresh)];
        for (at, side) in in_turn(sides.clone(), self.number) {
            sheet.add(&insert, at, measure::fill(side, self.rows)?);
        }
        for (at, side) in in_turn(sides, self.number) {
            sheet.add(&get, at, measure::look_up(side, question, 1, 1, self.plan.limits)?);
            let taken = side.bytes()?.unwrap_or_default();
            sheet.add(&bytes, at, taken as f64 / self.rows.len() as f64);
        }
        Ok(())
    }
}
