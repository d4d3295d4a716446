//! Searches in ascending values, each from where the last one ended.

use std::ops::Range;

/// The first place in `range` of ascending `values` that is not before `value`: at or above it, or above it if `after`. `hint` is where a value
/// near it was found last. O(log of the distance from there).
pub(super) fn seek(values: &[i64], range: Range<usize>, value: i64, after: bool, hint: usize) -> usize {
    let is_before = |at: usize| if after { values[at] <= value } else { values[at] < value };
    let Range { start, end } = range;
    let hint = hint.clamp(start, end);
    // What lies before `low` is before the value, what lies from `high` on is not.
    let (mut low, mut high) = (start, end);
    let mut step = 1;
    if hint < end && is_before(hint) {
        low = hint + 1;
        while low < end {
            let at = (low + step).min(end) - 1;
            if !is_before(at) {
                high = at;
                break;
            }
            low = at + 1;
            step *= 2;
        }
    } else {
        high = hint;
        while high > start {
            let at = high.saturating_sub(step).max(start);
            if is_before(at) {
                low = at + 1;
                break;
            }
            high = at;
            step *= 2;
        }
    }
    while low < high {
        let middle = low + (high - low) / 2;
        if is_before(middle) { low = middle + 1 } else { high = middle }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::seek;

    #[test]
    fn finds_what_a_plain_search_finds() {
        let mut rng = fastrand::Rng::with_seed(5);
        for _ in 0..20_000 {
            let mut values: Vec<i64> = (0..rng.usize(0..40)).map(|_| rng.i64(0..15)).collect();
            values.sort_unstable();
            let start = rng.usize(0..=values.len());
            let end = rng.usize(start..=values.len());
            let (value, after, hint) = (rng.i64(-1..16), rng.bool(), rng.usize(0..50));
            let before = |at: &i64| if after { *at <= value } else { *at < value };
            let wanted = start + values[start..end].partition_point(before);
            assert_eq!(
                seek(&values, start..end, value, after, hint),
                wanted,
                "{values:?} {start}..{end} {value} {after}"
            );
        }
    }
}
