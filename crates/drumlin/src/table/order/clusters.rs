//! Which row groups interleave in the sort order, found by their bounds.
//!
//! Usually the first sort column decides, of which the directories tell the bounds. Only where these are equal, or not exact,
//! are the whole sort keys at the ends of row groups compared.

use std::cmp::Ordering;

use crate::segment::{ColumnStats, Stat};

/// Bounds of a row group in the sort order.
#[derive(Clone, Debug)]
pub(in crate::table) struct Span {
    low: Edge,
    high: Edge,
    /// Whether both are those of a row, not only bounds around them.
    exact: bool,
    /// The least and the greatest sort key, as bytes that compare as they do, if they had to be read.
    pub keys: Option<(Vec<u8>, Vec<u8>)>,
}

/// A bound of the first sort column. Nulls come first.
#[derive(Clone, Debug)]
enum Edge {
    /// Below all.
    Lowest,
    Null,
    Value(Stat),
    /// Above all.
    Highest,
}

impl Edge {
    fn compare(&self, other: &Edge) -> Ordering {
        let rank = |edge: &Edge| match edge {
            Edge::Lowest => 0,
            Edge::Null => 1,
            Edge::Value(_) => 2,
            Edge::Highest => 3,
        };
        match (self, other) {
            (Edge::Value(a), Edge::Value(b)) => a.compare(b).unwrap_or(Ordering::Equal),
            _ => rank(self).cmp(&rank(other)),
        }
    }
}

impl Span {
    /// Of a row group of `rows` rows, with these statistics of its first sort column.
    pub fn new(stats: &ColumnStats, rows: u32) -> Self {
        let value = |stat: &Option<Stat>, none: Edge| stat.clone().map_or(none, Edge::Value);
        let all_null = stats.nulls == u64::from(rows);
        let low = if stats.nulls > 0 { Edge::Null } else { value(&stats.min, Edge::Lowest) };
        let high = if all_null { Edge::Null } else { value(&stats.max, Edge::Highest) };
        let told = !matches!((&low, &high), (Edge::Lowest, _) | (_, Edge::Highest));
        Self { low, high, exact: told && (stats.exact || all_null), keys: None }
    }

    /// Whether all its rows come before those of `later`, as far as the first column tells; `None` if the keys must be compared.
    fn is_before(&self, later: &Span, alone: bool) -> Option<bool> {
        match self.high.compare(&later.low) {
            Ordering::Less => Some(true),
            _ if !self.exact || !later.exact => None,
            Ordering::Greater => Some(false),
            // Equal rows keep the order in which they were written.
            Ordering::Equal => alone.then_some(true),
        }
    }

    /// Whether both have values of the same range, more than one at its end, as far as the first column tells.
    pub fn overlaps(&self, other: &Span) -> bool {
        self.low.compare(&other.high) == Ordering::Less && other.low.compare(&self.high) == Ordering::Less
    }

    /// Whether all its values are less than those of `later`.
    pub fn ends_before(&self, later: &Span) -> bool {
        self.high.compare(&later.low) == Ordering::Less
    }

    /// Whether both ends are those of a row, not only bounds around them.
    pub fn is_exact(&self) -> bool {
        self.exact
    }

    /// Whether all values of both are the same one.
    pub fn is_only(&self, other: &Span) -> bool {
        let same = |a: &Edge, b: &Edge| a.compare(b) == Ordering::Equal;
        same(&self.low, &self.high) && same(&self.low, &other.low) && same(&other.low, &other.high)
    }

    /// Compares where they begin, as far as that is known.
    pub fn compare_lows(&self, other: &Span) -> Ordering {
        self.low.compare(&other.low).then_with(|| self.low_key().cmp(&other.low_key()))
    }

    fn low_key(&self) -> Option<&[u8]> {
        self.keys.as_ref().map(|(low, _)| &low[..])
    }
}

/// In the order of their lower bounds.
fn ascending(spans: &[Span]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..spans.len()).collect();
    // A bound that is not exact may lie far below the least key.
    let by_keys = spans.iter().all(|span| span.keys.is_some());
    let compare = |a: &Span, b: &Span| if by_keys { a.low_key().cmp(&b.low_key()) } else { a.compare_lows(b) };
    order.sort_by(|&a, &b| compare(&spans[a], &spans[b]).then(a.cmp(&b)));
    order
}

/// The items whose keys must be read before [`clusters`] can tell them apart. `alone` says that there is one sort column: rows with
/// the same value in it are equal.
pub(in crate::table) fn undecided(spans: &[Span], alone: bool) -> Vec<usize> {
    if alone && spans.iter().all(|span| span.exact) {
        return Vec::new();
    }
    let mut found = vec![false; spans.len()];
    // Those that may reach as far as the next one begins.
    let mut open: Vec<usize> = Vec::new();
    for i in ascending(spans) {
        open.retain(|j| spans[*j].high.compare(&spans[i].low) != Ordering::Less);
        for &j in &open {
            // Of two that begin with the same value, either may come first.
            let same = !alone && spans[j].low.compare(&spans[i].low) == Ordering::Equal;
            if same || spans[j].is_before(&spans[i], alone).is_none() {
                (found[i], found[j]) = (true, true);
            }
        }
        open.push(i);
    }
    (0..spans.len()).filter(|at| found[*at]).collect()
}

/// Whether all rows of the item `earlier` come before those of the item `later`, as far as is known.
pub(in crate::table) fn is_before(spans: &[Span], earlier: usize, later: usize, alone: bool) -> bool {
    comes_before(&spans[earlier], &spans[later], earlier < later, alone)
}

/// Equal rows keep the order in which they were written.
fn comes_before(earlier: &Span, later: &Span, written_later: bool, alone: bool) -> bool {
    match (&earlier.keys, &later.keys) {
        (Some((_, high)), Some((low, _))) => high < low || (high == low && written_later),
        _ if earlier.high.compare(&later.low) == Ordering::Less => true,
        _ => earlier.is_before(later, alone) == Some(true) && written_later,
    }
}

/// Items that cannot be told apart, and the one that reaches furthest: of those that have keys, and of those that have none.
struct Cluster {
    items: Vec<usize>,
    /// The greatest of them.
    latest: usize,
    with_key: Option<usize>,
    without: Option<usize>,
}

impl Cluster {
    /// Whether all its rows come before those of the item `i`.
    fn is_before(&self, i: usize, spans: &[Span], alone: bool) -> bool {
        let before = |earlier: &usize| comes_before(&spans[*earlier], &spans[i], self.latest < i, alone);
        self.with_key.iter().chain(&self.without).all(before)
    }

    fn add(&mut self, i: usize, spans: &[Span]) {
        self.items.push(i);
        self.latest = self.latest.max(i);
        let reach = if spans[i].keys.is_some() { &mut self.with_key } else { &mut self.without };
        let further = |earlier: usize| match (&spans[earlier].keys, &spans[i].keys) {
            (Some((_, known)), Some((_, high))) => known < high,
            _ => spans[earlier].high.compare(&spans[i].high) == Ordering::Less,
        };
        if reach.is_none_or(further) {
            *reach = Some(i);
        }
    }
}

/// Groups items into clusters: in the result, every row of a cluster comes before every row of the next. Items of one cluster keep
/// their order. Those that [`undecided`] names have their keys.
pub(in crate::table) fn clusters(spans: &[Span], alone: bool) -> Vec<Vec<usize>> {
    let mut clusters: Vec<Cluster> = Vec::new();
    for i in ascending(spans) {
        if clusters.last().is_none_or(|last| last.is_before(i, spans, alone)) {
            clusters.push(Cluster { items: Vec::new(), latest: i, with_key: None, without: None });
        }
        let own = clusters.len() - 1;
        clusters[own].add(i, spans);
        // A bound that is not exact may have put others before this one that begin later.
        let first =
            clusters[..own].iter().rposition(|earlier| earlier.is_before(i, spans, alone)).map_or(0, |at| at + 1);
        for later in clusters.split_off((first + 1).min(own + 1)) {
            later.items.into_iter().for_each(|item| clusters[first].add(item, spans));
        }
    }
    let sorted = |mut cluster: Cluster| {
        cluster.items.sort_unstable();
        cluster.items
    };
    clusters.into_iter().map(sorted).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(min: i64, max: i64) -> Span {
        let (min, max) = (Some(Stat::Int(min)), Some(Stat::Int(max)));
        Span::new(&ColumnStats { nulls: 0, min, max, exact: true }, 10)
    }

    /// Items with two sort columns, each with its bounds; keys are read where the first column leaves it open.
    fn by_two(items: &[[(i64, i64); 2]]) -> Vec<Vec<usize>> {
        let key = |(a, b): (i64, i64)| [a.to_be_bytes(), b.to_be_bytes()].concat();
        let mut spans: Vec<Span> = items.iter().map(|[low, high]| range(low.0, high.0)).collect();
        for at in undecided(&spans, false) {
            spans[at].keys = Some((key(items[at][0]), key(items[at][1])));
        }
        clusters(&spans, false)
    }

    #[test]
    fn overlapping_groups_form_a_cluster() {
        let clusters = |spans: &[Span]| {
            assert_eq!(undecided(spans, true), Vec::<usize>::new());
            super::clusters(spans, true)
        };
        assert_eq!(clusters(&[range(0, 9), range(10, 19), range(20, 29)]), [[0], [1], [2]]);
        assert_eq!(clusters(&[range(20, 29), range(0, 9)]), [[1], [0]]);
        // Items that touch may hold equal rows: apart if they come in the order in which they were written.
        assert_eq!(clusters(&[range(0, 10), range(10, 19), range(20, 29)]), [[0], [1], [2]]);
        assert_eq!(clusters(&[range(0, 5), range(5, 5), range(5, 9)]), [[0], [1], [2]]);
        assert_eq!(clusters(&[range(10, 19), range(0, 10), range(20, 29)]), [vec![0, 1], vec![2]]);
        assert_eq!(clusters(&[range(0, 9), range(5, 6), range(9, 9)]), [vec![0, 1], vec![2]]);
        assert_eq!(clusters(&[range(5, 9), range(9, 12), range(0, 5)]), [[0, 1, 2]]);
        // A wide group takes in everything that it spans.
        assert_eq!(clusters(&[range(5, 6), range(0, 100), range(7, 8), range(101, 101)]), [vec![0, 1, 2], vec![3]]);
    }

    #[test]
    fn whole_keys_decide_where_the_first_column_does_not() {
        let in_order = [[(0, 0), (3, 50)], [(3, 51), (3, 99)], [(3, 99), (7, 0)], [(7, 1), (9, 9)]];
        assert_eq!(by_two(&in_order), [[0], [1], [2], [3]]);
        let mut reversed = in_order;
        reversed.reverse();
        // Two of them have a row in common, so the order in which they were written counts.
        assert_eq!(by_two(&reversed), [vec![3], vec![1, 2], vec![0]]);
        assert_eq!(by_two(&[[(0, 0), (3, 50)], [(3, 49), (4, 0)], [(5, 0), (6, 0)]]), [vec![0, 1], vec![2]]);
        // One that is decided by its first column lies within one that is not.
        assert_eq!(by_two(&[[(0, 0), (9, 0)], [(9, 1), (9, 5)], [(4, 0), (5, 0)]]), [vec![0, 2], vec![1]]);
        assert_eq!(by_two(&[[(9, 0), (9, 5)], [(9, 6), (9, 9)], [(0, 0), (9, 7)]]), [[0, 1, 2]]);
    }

    #[test]
    fn nulls_come_first() {
        let nulls = |rows| Span::new(&ColumnStats { nulls: rows, exact: true, ..ColumnStats::default() }, 10);
        let from_null = |max: i64| {
            let (min, max) = (Some(Stat::Int(3)), Some(Stat::Int(max)));
            Span::new(&ColumnStats { nulls: 1, min, max, exact: true }, 10)
        };
        assert_eq!(clusters(&[nulls(10), nulls(10), from_null(5), range(6, 9)], true), [[0], [1], [2], [3]]);
        assert_eq!(clusters(&[range(6, 9), from_null(5), nulls(10)], true), [vec![1, 2], vec![0]]);
        assert_eq!(clusters(&[range(0, 9), from_null(5)], true), [[0, 1]]);
    }

    #[test]
    fn keys_are_read_where_bounds_are_not_exact() {
        let cut = Span::new(&ColumnStats { exact: false, ..ColumnStats::default() }, 10);
        let mut spans = [range(0, 5), cut, range(6, 9)];
        assert_eq!(undecided(&spans, true), [0, 1, 2]);
        for (span, (low, high)) in spans.iter_mut().zip([(0, 5), (10, 11), (6, 9)]) {
            span.keys = Some((vec![low], vec![high]));
        }
        assert_eq!(clusters(&spans, true), [[0], [2], [1]]);
        // A bound that is cut, but far enough from the others, decides.
        let text = |min: &str, max: &str, exact| {
            let stat = |text: &str| Some(Stat::Bytes(text.into()));
            Span::new(&ColumnStats { nulls: 0, min: stat(min), max: stat(max), exact }, 10)
        };
        let spans = [text("a", "b", false), text("c", "d", false), text("d", "e", true)];
        assert_eq!(undecided(&spans, true), [1, 2]);
    }
}
