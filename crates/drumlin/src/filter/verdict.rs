//! What statistics say about a filter, without reading a row.
//!
//! Invariant: [`Outcomes`] holds every truth value that some row can have, and perhaps others.

use std::ops::Range;

use arrow::array::Array;

use super::kind::{DomainLiteral, Kind};
use super::plan::{ColumnRef, Predicate, ScalarExpression, Test};
use super::text::number::float_key;
use super::text::syntax::CompareOp;
use crate::segment::{ColumnStats, Stat};

/// What statistics say about the rows of a row group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// No row matches.
    None,
    /// Every row matches.
    All,
    /// Unknown: the rows must be evaluated.
    Some,
}

type StatsLookup<'a> = &'a dyn Fn(usize) -> Option<ColumnStats>;

/// The truth values that rows can have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Outcomes {
    yes: bool,
    no: bool,
    unknown: bool,
}

const ANY: Outcomes = Outcomes { yes: true, no: true, unknown: true };
const KNOWN: Outcomes = Outcomes { unknown: false, ..ANY };

/// What follows for all of `rows` rows.
pub fn verdict(node: &Predicate, rows: u64, stats: StatsLookup) -> Verdict {
    let outcomes = Pruner { rows, stats }.outcomes(node);
    match outcomes {
        _ if rows == 0 => Verdict::None,
        Outcomes { yes: false, .. } => Verdict::None,
        Outcomes { yes: true, no: false, unknown: false } => Verdict::All,
        _ => Verdict::Some,
    }
}

/// The same predicate for rows whose columns have these statistics: of literals to look for, only those that a row may have.
pub fn narrowed(node: &Predicate, rows: u64, stats: StatsLookup) -> Predicate {
    let pruner = Pruner { rows, stats };
    let one = |node: &Predicate| narrowed(node, rows, stats);
    match node {
        Predicate::And(terms) => Predicate::And(terms.iter().map(one).collect()),
        Predicate::Or(terms) => Predicate::Or(terms.iter().map(one).collect()),
        Predicate::Not(inner) => Predicate::Not(Box::new(one(inner))),
        Predicate::Test(ScalarExpression::Column(column), test) => {
            let test = pruner.narrowed(column, test).unwrap_or_else(|| test.clone());
            Predicate::Test(ScalarExpression::Column(column.clone()), test)
        }
        other => other.clone(),
    }
}

/// Where a predicate of one column is true, whose values ascend, nulls first; `None` if that is not known without looking at each.
pub fn true_in_sorted(node: &Predicate, column: &dyn Array) -> Option<Vec<Range<usize>>> {
    match node {
        Predicate::And(terms) => {
            let ranges = terms.iter().map(|term| true_in_sorted(term, column)).collect::<Option<Vec<_>>>()?;
            ranges.into_iter().reduce(|all, own| {
                let both = |a: &Range<usize>, b: &Range<usize>| a.start.max(b.start)..a.end.min(b.end);
                all.iter().flat_map(|a| own.iter().map(move |b| both(a, b))).filter(|range| !range.is_empty()).collect()
            })
        }
        Predicate::Test(ScalarExpression::Column(ColumnRef { path, .. }), test) if path.len() == 1 => {
            super::column::true_in_sorted(column, test)
        }
        _ => None,
    }
}

/// About which share of rows passes, if values are spread evenly between their bounds; 1 where nothing is known.
pub fn share(node: &Predicate, rows: u64, stats: StatsLookup) -> f64 {
    match node {
        Predicate::And(terms) => terms.iter().map(|term| share(term, rows, stats)).product(),
        Predicate::Or(terms) => terms.iter().map(|term| share(term, rows, stats)).sum::<f64>().min(1.0),
        Predicate::Test(ScalarExpression::Column(column), test) => {
            Pruner { rows, stats }.share(column, test).map_or(1.0, |share| share.clamp(0.0, 1.0))
        }
        _ => 1.0,
    }
}

/// How many tests of a row look for its value among many, or for a pattern in it: these take several times as long as others.
pub fn searches(node: &Predicate) -> u64 {
    match node {
        Predicate::And(terms) | Predicate::Or(terms) => terms.iter().map(searches).sum(),
        Predicate::Not(inner) | Predicate::IsTruth(inner, _) => searches(inner),
        Predicate::Test(_, Test::Keys(_) | Test::ByteStrings(_) | Test::Like(_)) => 1,
        _ => 0,
    }
}

struct Pruner<'a> {
    rows: u64,
    stats: StatsLookup<'a>,
}

impl Pruner<'_> {
    fn outcomes(&self, node: &Predicate) -> Outcomes {
        match node {
            Predicate::Constant(truth) => Outcomes::one(*truth),
            Predicate::And(terms) => {
                terms.iter().fold(Outcomes::one(Some(true)), |all, term| all.and(self.outcomes(term)))
            }
            // By De Morgan, which holds for three truth values too.
            Predicate::Or(terms) => {
                terms.iter().fold(Outcomes::one(Some(true)), |all, term| all.and(self.outcomes(term).not())).not()
            }
            Predicate::Not(node) => self.outcomes(node).not(),
            Predicate::IsTruth(node, truth) => {
                let inner = self.outcomes(node);
                let others = Outcomes::all().into_iter().filter(|other| other != truth);
                Outcomes {
                    yes: inner.has(*truth),
                    no: others.into_iter().any(|other| inner.has(other)),
                    unknown: false,
                }
            }
            Predicate::IsNull(ScalarExpression::Column(column)) => match self.nulls(column) {
                Some(nulls) => Outcomes { yes: nulls > 0, no: nulls < self.rows, unknown: false },
                None => KNOWN,
            },
            Predicate::IsNull(_) => KNOWN,
            Predicate::Flag(column) => self.flag(column),
            Predicate::Test(ScalarExpression::Column(column), test) => self.test(column, test),
            Predicate::Test(..) | Predicate::CompareValues { .. } | Predicate::CompareBytes { .. } => ANY,
            Predicate::CompareTruth { op, left, right } => compare(*op, self.outcomes(left), self.outcomes(right)),
        }
    }

    /// Statistics are about whole columns: nothing is known about the fields within them.
    fn stats(&self, column: &ColumnRef) -> Option<ColumnStats> {
        let stats = if column.path.len() == 1 { (self.stats)(column.index)? } else { return None };
        (stats.nulls <= self.rows).then_some(stats)
    }

    fn nulls(&self, column: &ColumnRef) -> Option<u64> {
        Some(self.stats(column)?.nulls)
    }

    fn flag(&self, column: &ColumnRef) -> Outcomes {
        let Some(stats) = self.stats(column) else { return ANY };
        let least = matches!(stats.min, Some(Stat::Bool(true)));
        let greatest = !matches!(stats.max, Some(Stat::Bool(false)));
        self.with_nulls(&stats, Outcomes { yes: greatest, no: !least, unknown: false })
    }

    /// A test of a column for one of many literals with those alone that are within its bounds.
    fn narrowed(&self, column: &ColumnRef, test: &Test) -> Option<Test> {
        let (stats, kind) = self.stats(column).zip(column.kind)?;
        let bounds = [stats.min.as_ref()?, stats.max.as_ref()?];
        match test {
            Test::Keys(set) => {
                let [min, max] = bounds.map(|stat| key(stat, kind));
                let literal = |key: &i128| DomainLiteral::Key((*key, true));
                Some(Test::among(within(&set.sorted, &min?, &max?).iter().map(literal).collect()))
            }
            Test::ByteStrings(set) => {
                let [min, max] = bounds.map(|stat| bytes(stat).cloned());
                let literal = |bytes: &Vec<u8>| DomainLiteral::Bytes(bytes.clone());
                Some(Test::among(within(&set.sorted, &min?, &max?).iter().map(literal).collect()))
            }
            _ => None,
        }
    }

    fn share(&self, column: &ColumnRef, test: &Test) -> Option<f64> {
        /// Different texts of a page, if nothing is known of them.
        const TEXTS: f64 = 16.0;
        let (stats, kind) = self.stats(column).zip(column.kind)?;
        let [min, max] = [stats.min.as_ref()?, stats.max.as_ref()?].map(|stat| key(stat, kind));
        let width = || Some((max?.saturating_sub(min?) as f64) + 1.0);
        Some(match test {
            Test::Constant(answer) => f64::from(u8::from(*answer)),
            Test::Key(CompareOp::Eq, _) => 1.0 / width()?,
            Test::Key(CompareOp::Lt | CompareOp::Le, bound) => bound.saturating_sub(min?) as f64 / width()?,
            Test::Key(CompareOp::Gt | CompareOp::Ge, bound) => max?.saturating_sub(*bound) as f64 / width()?,
            Test::Keys(set) => within(&set.sorted, &min?, &max?).len() as f64 / width()?,
            Test::Bytes(CompareOp::Eq, _) => 1.0 / TEXTS,
            Test::ByteStrings(set) => set.sorted.len() as f64 / TEXTS,
            _ => return None,
        })
    }

    fn test(&self, column: &ColumnRef, test: &Test) -> Outcomes {
        let Some((stats, kind)) = self.stats(column).zip(column.kind) else { return ANY };
        let values = match test {
            Test::Constant(answer) => Outcomes::one(Some(*answer)),
            Test::Key(op, bound) => {
                let [min, max] = [&stats.min, &stats.max].map(|stat| stat.as_ref().and_then(|stat| key(stat, kind)));
                compare_bounds(*op, min.as_ref(), max.as_ref(), bound)
            }
            Test::Keys(set) => {
                let [min, max] = [&stats.min, &stats.max].map(|stat| stat.as_ref().and_then(|stat| key(stat, kind)));
                among_bounds(&set.sorted, min.as_ref(), max.as_ref())
            }
            Test::Bytes(op, bound) => {
                let [min, max] = [&stats.min, &stats.max].map(|stat| stat.as_ref().and_then(bytes));
                compare_bounds(*op, min, max, bound)
            }
            Test::ByteStrings(set) => {
                let [min, max] = [&stats.min, &stats.max].map(|stat| stat.as_ref().and_then(bytes));
                among_bounds(&set.sorted, min, max)
            }
            Test::Like(pattern) => {
                let [min, max] = [&stats.min, &stats.max].map(|stat| stat.as_ref().and_then(bytes));
                like_bounds(&pattern.prefix, pattern.prefix_only, min, max)
            }
        };
        self.with_nulls(&stats, values)
    }

    /// Outcomes of the values, and unknown for nulls.
    fn with_nulls(&self, stats: &ColumnStats, values: Outcomes) -> Outcomes {
        if stats.nulls == self.rows {
            return Outcomes::one(None);
        }
        Outcomes { unknown: stats.nulls > 0, ..values }
    }
}

impl Outcomes {
    fn all() -> [Option<bool>; 3] {
        [Some(true), Some(false), None]
    }

    fn one(truth: Option<bool>) -> Outcomes {
        let mut outcomes = Outcomes::default();
        outcomes.add(truth);
        outcomes
    }

    fn add(&mut self, truth: Option<bool>) {
        match truth {
            Some(true) => self.yes = true,
            Some(false) => self.no = true,
            None => self.unknown = true,
        }
    }

    fn has(self, truth: Option<bool>) -> bool {
        match truth {
            Some(true) => self.yes,
            Some(false) => self.no,
            None => self.unknown,
        }
    }

    fn not(self) -> Outcomes {
        Outcomes { yes: self.no, no: self.yes, unknown: self.unknown }
    }

    fn and(self, other: Outcomes) -> Outcomes {
        self.combine(other, |a, b| match (a, b) {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (Some(true), Some(true)) => Some(true),
            _ => None,
        })
    }

    fn combine(self, other: Outcomes, truth: impl Fn(Option<bool>, Option<bool>) -> Option<bool>) -> Outcomes {
        let mut outcomes = Outcomes::default();
        for a in Self::all().into_iter().filter(|a| self.has(*a)) {
            for b in Self::all().into_iter().filter(|b| other.has(*b)) {
                outcomes.add(truth(a, b));
            }
        }
        outcomes
    }
}

fn compare(op: CompareOp, left: Outcomes, right: Outcomes) -> Outcomes {
    left.combine(right, |a, b| Some(op.holds(a?.cmp(&b?))))
}

/// A bound as a key of the kind; `None` if its variant is not that of the kind.
pub fn key(stat: &Stat, kind: Kind) -> Option<i128> {
    match (stat, kind) {
        (Stat::Float(value), Kind::Float) => Some(i128::from(float_key(*value))),
        (_, Kind::Float) => None,
        (Stat::Int(value), _) => Some(i128::from(*value)),
        (Stat::UInt(value), Kind::Number { .. }) => Some(i128::from(*value)),
        (Stat::Decimal(value), Kind::Number { .. }) => Some(*value),
        _ => None,
    }
}

fn bytes(stat: &Stat) -> Option<&Vec<u8>> {
    match stat {
        Stat::Bytes(bytes) => Some(bytes),
        _ => None,
    }
}

/// `value op bound` for values within `min..=max`.
fn compare_bounds<T: Ord>(op: CompareOp, min: Option<&T>, max: Option<&T>, bound: &T) -> Outcomes {
    // Whether values may be below, at and above the bound.
    let below = min.is_none_or(|min| min < bound);
    let above = max.is_none_or(|max| max > bound);
    let at = min.is_none_or(|min| min <= bound) && max.is_none_or(|max| max >= bound);
    let mut outcomes = Outcomes::default();
    for (possible, order) in
        [(below, std::cmp::Ordering::Less), (at, std::cmp::Ordering::Equal), (above, std::cmp::Ordering::Greater)]
    {
        if possible {
            outcomes.add(Some(op.holds(order)));
        }
    }
    outcomes
}

/// Those of `sorted` from `min` to `max`.
fn within<'s, T: Ord>(sorted: &'s [T], min: &T, max: &T) -> &'s [T] {
    let from = sorted.partition_point(|value| value < min);
    &sorted[from..from.max(sorted.partition_point(|value| value <= max))]
}

/// Membership of values within `min..=max`.
fn among_bounds<T: Ord>(sorted: &[T], min: Option<&T>, max: Option<&T>) -> Outcomes {
    let start = min.map_or(0, |min| sorted.partition_point(|value| value < min));
    let end = max.map_or(sorted.len(), |max| sorted.partition_point(|value| value <= max));
    let single = min.is_some() && min == max;
    Outcomes { yes: start < end, no: !(single && start < end), unknown: false }
}

/// Patterns that start with `prefix`, for values within `min..=max`.
fn like_bounds(prefix: &[u8], prefix_only: bool, min: Option<&Vec<u8>>, max: Option<&Vec<u8>>) -> Outcomes {
    // The values with a prefix are an interval: outside it are the values below the prefix, and those above that do not
    // start with it.
    let beneath = max.is_some_and(|max| max.as_slice() < prefix);
    let beyond = min.is_some_and(|min| min.as_slice() > prefix && !min.starts_with(prefix));
    let within = prefix_only && [min, max].iter().all(|bound| bound.is_some_and(|bound| bound.starts_with(prefix)));
    Outcomes { yes: !beneath && !beyond, no: !within, unknown: false }
}
