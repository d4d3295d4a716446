//! What is known of groups while rows come: one state an aggregate, with a place for each group.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Decimal128Array, Float64Array, Int64Array, UInt64Array, new_null_array,
};
use arrow::buffer::NullBuffer;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Decimal128Type, Float64Type, Int64Type, UInt64Type};
use arrow::row::{RowConverter, SortField};

use super::codes::{Codes, Combinations, picked, plain_floats};
use super::exact::{ExactSum, variance};
use super::plan::{Bound, Function, scale_of};
use crate::base::{Error, Result};

/// Values of one row in bytes that compare like them.
type Bytes = Box<[u8]>;

/// Where groups are.
#[derive(Debug)]
pub enum State {
    Count(Vec<u64>),
    /// Values of each group.
    Distinct(Vec<HashSet<Bytes>>, DataType),
    /// The sum, and of how many values.
    Integers(Vec<i128>, Vec<u64>),
    Floats(Vec<ExactSum>, Vec<u64>),
    /// The sum, that of squares, and of how many values.
    Squares(Vec<(ExactSum, ExactSum)>, Vec<u64>),
    /// The sum of products with weights, and that of weights.
    Weighted(Vec<(ExactSum, ExactSum)>, Vec<u64>),
    /// All values.
    Values(Vec<Vec<f64>>),
    /// The best value so far, and where it came from.
    Best(Vec<Option<(Bytes, u64)>>, Kind, DataType),
    /// Whether there was a `true`, and a `false`.
    Truth(Vec<(bool, bool)>),
}

/// Which value of a group is the best.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Least,
    Greatest,
    First,
    Last,
}

impl Kind {
    /// Whether something is better than what there is.
    fn is_better(self, new: (&[u8], u64), old: (&[u8], u64)) -> bool {
        match self {
            Self::Least => new.0 < old.0,
            Self::Greatest => new.0 > old.0,
            Self::First => new.1 < old.1,
            Self::Last => new.1 > old.1,
        }
    }
}

/// Numbers that are added up.
fn is_integer(data_type: &DataType) -> bool {
    data_type.is_integer() || *data_type == DataType::Boolean || scale_of(data_type).is_some()
}

/// Calls `with` for each value that is not null.
fn each<T: Copy>(values: &[T], nulls: Option<&NullBuffer>, ids: &[u32], mut with: impl FnMut(usize, T)) {
    match nulls.filter(|nulls| nulls.null_count() > 0) {
        None => values.iter().zip(ids).for_each(|(value, id)| with(*id as usize, *value)),
        Some(nulls) => nulls.valid_indices().for_each(|at| with(ids[at] as usize, values[at])),
    }
}

fn doubles(array: &ArrayRef) -> Result<Float64Array> {
    Ok(cast(array, &DataType::Float64)?.as_primitive::<Float64Type>().clone())
}

impl State {
    /// For an aggregate of values of type `data_type`.
    pub fn new(function: &Function, data_type: &DataType) -> Self {
        let best = |kind| Self::Best(Vec::new(), kind, data_type.clone());
        match function {
            Function::Count => Self::Count(Vec::new()),
            Function::CountDistinct => Self::Distinct(Vec::new(), data_type.clone()),
            Function::Sum | Function::Mean if is_integer(data_type) => Self::Integers(Vec::new(), Vec::new()),
            Function::Sum | Function::Mean => Self::Floats(Vec::new(), Vec::new()),
            Function::Std | Function::Var => Self::Squares(Vec::new(), Vec::new()),
            Function::WeightedMean(_) => Self::Weighted(Vec::new(), Vec::new()),
            Function::Quantile(_) => Self::Values(Vec::new()),
            Function::Min => best(Kind::Least),
            Function::Max => best(Kind::Greatest),
            Function::First => best(Kind::First),
            Function::Last => best(Kind::Last),
            Function::Any | Function::All => Self::Truth(Vec::new()),
        }
    }

    /// Makes places for new groups.
    pub fn grow(&mut self, groups: usize) {
        match self {
            Self::Count(n) => n.resize(groups, 0),
            Self::Distinct(sets, _) => sets.resize_with(groups, HashSet::new),
            Self::Integers(sums, n) => {
                sums.resize(groups, 0);
                n.resize(groups, 0);
            }
            Self::Floats(sums, n) => {
                sums.resize_with(groups, ExactSum::default);
                n.resize(groups, 0);
            }
            Self::Squares(sums, n) | Self::Weighted(sums, n) => {
                sums.resize_with(groups, Default::default);
                n.resize(groups, 0);
            }
            Self::Values(values) => values.resize_with(groups, Vec::new),
            Self::Best(best, ..) => best.resize(groups, None),
            Self::Truth(truth) => truth.resize(groups, (false, false)),
        }
    }

    /// Adds rows: `ids` are their groups, `values` the values and, for a weighted mean, the weights; without values, rows are counted.
    /// `rank` is the place of the first row.
    pub fn add(&mut self, ids: &[u32], values: &[ArrayRef], rank: u64) -> Result<()> {
        let array = values.first();
        match (self, array) {
            (Self::Count(n), None) => ids.iter().for_each(|id| n[*id as usize] += 1),
            (Self::Count(n), Some(array)) => match array.logical_nulls().filter(|nulls| nulls.null_count() > 0) {
                None => ids.iter().for_each(|id| n[*id as usize] += 1),
                Some(nulls) => nulls.valid_indices().for_each(|at| n[ids[at] as usize] += 1),
            },
            (_, None) => return Err(Error::invalid("an aggregate without a column")),
            (Self::Integers(sums, n), Some(array)) => add_integers(sums, n, ids, array)?,
            (Self::Floats(sums, n), Some(array)) => {
                let values = doubles(array)?;
                each(values.values(), values.nulls(), ids, |id, value| {
                    sums[id].add(value);
                    n[id] += 1;
                });
            }
            (Self::Squares(sums, n), Some(array)) => {
                let values = doubles(array)?;
                each(values.values(), values.nulls(), ids, |id, value| {
                    sums[id].0.add(value);
                    sums[id].1.add_product(value, value);
                    n[id] += 1;
                });
            }
            (Self::Weighted(sums, n), Some(array)) => {
                let (values, weights) = (doubles(array)?, doubles(&values[1])?);
                let nulls = NullBuffer::union(values.nulls(), weights.nulls());
                let pairs: Vec<(f64, f64)> =
                    values.values().iter().copied().zip(weights.values().iter().copied()).collect();
                each(&pairs, nulls.as_ref(), ids, |id, (value, weight)| {
                    sums[id].0.add_product(value, weight);
                    sums[id].1.add(weight);
                    n[id] += 1;
                });
            }
            (Self::Values(all), Some(array)) => {
                let values = doubles(&plain_floats(array)?)?;
                each(values.values(), values.nulls(), ids, |id, value| all[id].push(value));
            }
            (Self::Truth(truth), Some(array)) => {
                let array = cast(array, &DataType::Boolean)?;
                for (value, id) in array.as_boolean().iter().zip(ids) {
                    let (any, not_all) = &mut truth[*id as usize];
                    (*any, *not_all) = (*any || value == Some(true), *not_all || value == Some(false));
                }
            }
            (Self::Distinct(sets, data_type), Some(array)) => {
                let groups = Codes { of_rows: ids.to_vec(), distinct: sets.len() };
                let found = Combinations::of(&[groups, Codes::of(array)?], array.len());
                let (rows, nulls) = (in_bytes(array, &found.first, data_type)?, array.logical_nulls());
                for (first, bytes) in found.first.iter().zip(rows) {
                    if nulls.as_ref().is_none_or(|nulls| nulls.is_valid(*first as usize)) {
                        sets[ids[*first as usize] as usize].insert(bytes);
                    }
                }
            }
            (Self::Best(best, kind, data_type), Some(array)) => add_best(best, *kind, data_type, ids, array, rank)?,
        }
        Ok(())
    }

    /// Takes in what another knows, whose groups are those of `map` here.
    pub fn merge(&mut self, other: Self, map: &[u32]) {
        let to = |at: usize| map[at] as usize;
        match (self, other) {
            (Self::Count(n), Self::Count(more)) => {
                more.into_iter().enumerate().for_each(|(at, more)| n[to(at)] += more)
            }
            (Self::Distinct(sets, _), Self::Distinct(more, _)) => {
                for (at, more) in more.into_iter().enumerate() {
                    let set = &mut sets[to(at)];
                    if set.is_empty() {
                        *set = more;
                    } else {
                        set.extend(more);
                    }
                }
            }
            (Self::Integers(sums, n), Self::Integers(more, counts)) => {
                for (at, (more, count)) in more.into_iter().zip(counts).enumerate() {
                    sums[to(at)] = sums[to(at)].saturating_add(more);
                    n[to(at)] += count;
                }
            }
            (Self::Floats(sums, n), Self::Floats(more, counts)) => {
                for (at, (more, count)) in more.iter().zip(counts).enumerate() {
                    sums[to(at)].merge(more);
                    n[to(at)] += count;
                }
            }
            (Self::Squares(sums, n), Self::Squares(more, counts))
            | (Self::Weighted(sums, n), Self::Weighted(more, counts)) => {
                for (at, (more, count)) in more.iter().zip(counts).enumerate() {
                    sums[to(at)].0.merge(&more.0);
                    sums[to(at)].1.merge(&more.1);
                    n[to(at)] += count;
                }
            }
            (Self::Values(all), Self::Values(more)) => {
                more.into_iter().enumerate().for_each(|(at, more)| all[to(at)].extend(more));
            }
            (Self::Best(best, kind, _), Self::Best(more, ..)) => {
                for (at, more) in more.into_iter().enumerate() {
                    offer(&mut best[to(at)], more, *kind);
                }
            }
            (Self::Truth(truth), Self::Truth(more)) => {
                for (at, (any, not_all)) in more.into_iter().enumerate() {
                    truth[to(at)] = (truth[to(at)].0 || any, truth[to(at)].1 || not_all);
                }
            }
            _ => unreachable!("states of the same aggregate"),
        }
    }

    /// The results, in the order of `groups`, in the type that the plan says. `InvalidArgument` if a sum is beyond it.
    pub fn finish(mut self, groups: &[u32], bound: &Bound, result: &DataType) -> Result<ArrayRef> {
        let function = &bound.function;
        let groups = || groups.iter().map(|group| *group as usize);
        let floats =
            |of: &mut dyn FnMut(usize) -> Option<f64>| Arc::new(groups().map(of).collect::<Float64Array>()) as ArrayRef;
        Ok(match &mut self {
            Self::Count(n) => counts(groups().map(|at| n[at])),
            Self::Distinct(sets, _) => counts(groups().map(|at| sets[at].len() as u64)),
            Self::Integers(sums, n) if *function == Function::Mean => {
                let scale = i32::from(scale_of(&bound.data_type).unwrap_or(0));
                let mean = |at: usize| (n[at] > 0).then(|| sums[at] as f64 / n[at] as f64 / 10_f64.powi(scale));
                Arc::new(groups().map(mean).collect::<Float64Array>())
            }
            Self::Integers(sums, n) => {
                let found = groups().map(|at| (n[at] > 0).then_some(sums[at]));
                integers(found, result)?
            }
            Self::Floats(sums, n) => floats(&mut |at| {
                let count = if *function == Function::Mean { n[at] as f64 } else { 1.0 };
                (n[at] > 0).then(|| sums[at].value() / count)
            }),
            Self::Squares(sums, n) => floats(&mut |at| {
                let variance = (n[at] > 1).then(|| variance(n[at], &sums[at].0, &sums[at].1))?;
                Some(if *function == Function::Std { variance.sqrt() } else { variance })
            }),
            Self::Weighted(sums, n) => floats(&mut |at| (n[at] > 0).then(|| sums[at].0.value() / sums[at].1.value())),
            Self::Values(all) => {
                let Function::Quantile(share) = function else { unreachable!("only quantiles keep values") };
                floats(&mut |at| quantile(&mut all[at], *share))
            }
            Self::Best(best, ..) => {
                let chosen: Vec<Option<&[u8]>> =
                    groups().map(|at| best[at].as_ref().map(|(bytes, _)| &**bytes)).collect();
                from_bytes(&chosen, result)?
            }
            Self::Truth(truth) => {
                let known = |at: usize| {
                    let (any, not_all) = truth[at];
                    (any || not_all).then_some(if *function == Function::Any { any } else { !not_all })
                };
                Arc::new(groups().map(known).collect::<BooleanArray>())
            }
        })
    }

    /// About how much memory it takes.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Count(n) => n.len() * 8,
            Self::Distinct(sets, _) => sets
                .iter()
                .map(|set| 48 + set.capacity() * 17 + set.iter().take(1).map(|v| v.len() * set.len()).sum::<usize>())
                .sum(),
            Self::Integers(sums, _) => sums.len() * 24,
            Self::Floats(sums, _) => sums.iter().map(|sum| size_of::<ExactSum>() + 8 + sum.extra_bytes()).sum(),
            Self::Squares(sums, _) | Self::Weighted(sums, _) => {
                sums.iter().map(|(a, b)| 2 * size_of::<ExactSum>() + 8 + a.extra_bytes() + b.extra_bytes()).sum()
            }
            Self::Values(all) => all.iter().map(|values| 24 + values.capacity() * 8).sum(),
            Self::Best(best, ..) => {
                best.iter().map(|best| 40 + best.as_ref().map_or(0, |(bytes, _)| bytes.len())).sum()
            }
            Self::Truth(truth) => truth.len() * 2,
        }
    }
}

fn counts(n: impl Iterator<Item = u64>) -> ArrayRef {
    Arc::new(n.map(u64::cast_signed).collect::<Int64Array>())
}

/// Adds what is counted without fractions. Sums of 128 bits hold the sums of 2^64 rows, except of wide decimals: those stay at the
/// greatest, which no result holds.
fn add_integers(sums: &mut [i128], n: &mut [u64], ids: &[u32], array: &ArrayRef) -> Result<()> {
    let values_type = match array.data_type() {
        DataType::Dictionary(_, values) => values.as_ref(),
        other => other,
    };
    let mut add = |id: usize, value: i128| {
        sums[id] = sums[id].saturating_add(value);
        n[id] += 1;
    };
    match (values_type, scale_of(values_type)) {
        (_, Some(scale)) => {
            let array = cast(array, &DataType::Decimal128(38, scale))?;
            let array: &Decimal128Array = array.as_primitive::<Decimal128Type>();
            each(array.values(), array.nulls(), ids, add);
        }
        (DataType::UInt64, None) => {
            let array = cast(array, &DataType::UInt64)?;
            let array: &UInt64Array = array.as_primitive::<UInt64Type>();
            each(array.values(), array.nulls(), ids, |id, value| add(id, i128::from(value)));
        }
        _ => {
            let array = cast(array, &DataType::Int64)?;
            let array: &Int64Array = array.as_primitive::<Int64Type>();
            each(array.values(), array.nulls(), ids, |id, value| add(id, i128::from(value)));
        }
    }
    Ok(())
}

fn integers(sums: impl Iterator<Item = Option<i128>>, result: &DataType) -> Result<ArrayRef> {
    let beyond = |sum: i128| {
        Error::invalid(format!(
            "the sum of a group is {sum}, beyond {result}: sum a calculation with it, such as `column * 1.0`"
        ))
    };
    Ok(match result {
        DataType::UInt64 => {
            let fit = |sum: i128| u64::try_from(sum).map_err(|_| beyond(sum));
            Arc::new(sums.map(|sum| sum.map(fit).transpose()).collect::<Result<UInt64Array>>()?)
        }
        DataType::Decimal128(precision, scale) => {
            let greatest = 10_i128.pow(u32::from(*precision)) - 1;
            let fit = |sum: i128| if sum.abs() <= greatest { Ok(sum) } else { Err(beyond(sum)) };
            let fitting = sums.map(|sum| sum.map(fit).transpose()).collect::<Result<Decimal128Array>>()?;
            Arc::new(fitting.with_precision_and_scale(*precision, *scale)?)
        }
        _ => {
            let fit = |sum: i128| i64::try_from(sum).map_err(|_| beyond(sum));
            Arc::new(sums.map(|sum| sum.map(fit).transpose()).collect::<Result<Int64Array>>()?)
        }
    })
}

/// Between the two nearest values, by how near they are.
fn quantile(values: &mut [f64], share: f64) -> Option<f64> {
    let last = values.len().checked_sub(1)?;
    let place = share * last as f64;
    let (at, rest) = (place.floor() as usize, place.fract());
    let (_, low, above) = values.select_nth_unstable_by(at, f64::total_cmp);
    let low = *low;
    if rest == 0.0 {
        return Some(low);
    }
    let high = above.iter().copied().min_by(f64::total_cmp).unwrap_or(low);
    Some(if low == high { low } else { low + (high - low) * rest })
}

/// Rows of an array in bytes that compare like their values.
pub fn in_bytes(array: &ArrayRef, rows: &[u32], data_type: &DataType) -> Result<Vec<Bytes>> {
    let converter = RowConverter::new(vec![SortField::new(data_type.clone())])?;
    let converted = converter.convert_columns(&[picked(array, rows, data_type)?])?;
    Ok(converted.iter().map(|row| row.data().into()).collect())
}

/// The values of such bytes; null where there are none.
fn from_bytes(chosen: &[Option<&[u8]>], data_type: &DataType) -> Result<ArrayRef> {
    let converter = RowConverter::new(vec![SortField::new(data_type.clone())])?;
    let parser = converter.parser();
    let null = converter.convert_columns(&[new_null_array(data_type, 1)])?;
    let rows = chosen.iter().map(|bytes| parser.parse(bytes.unwrap_or_else(|| null.row(0).data())));
    Ok(converter.convert_rows(rows)?.remove(0))
}

fn offer(best: &mut Option<(Bytes, u64)>, new: Option<(Bytes, u64)>, kind: Kind) {
    let Some(new) = new else { return };
    if best.as_ref().is_none_or(|old| kind.is_better((&new.0, new.1), (&old.0, old.1))) {
        *best = Some(new);
    }
}

/// The best row of each group of a batch, then compared with what there was before.
fn add_best(
    best: &mut [Option<(Bytes, u64)>],
    kind: Kind,
    data_type: &DataType,
    ids: &[u32],
    array: &ArrayRef,
    rank: u64,
) -> Result<()> {
    let nulls = array.logical_nulls();
    let mut chosen = vec![u32::MAX; best.len()];
    let mut touched = Vec::new();
    let mut choose = |better: &dyn Fn(usize, usize) -> bool| {
        for (at, id) in ids.iter().enumerate() {
            if nulls.as_ref().is_some_and(|nulls| nulls.is_null(at)) {
                continue;
            }
            let there = &mut chosen[*id as usize];
            if *there == u32::MAX {
                touched.push(*id);
                *there = at as u32;
            } else if better(at, *there as usize) {
                *there = at as u32;
            }
        }
    };
    match kind {
        Kind::First => choose(&|_, _| false),
        Kind::Last => choose(&|_, _| true),
        Kind::Least | Kind::Greatest => {
            let wanted = if kind == Kind::Least { Ordering::Less } else { Ordering::Greater };
            let plain = plain_floats(array)?;
            match plain.data_type() {
                DataType::Float16 | DataType::Float32 | DataType::Float64 => {
                    let values = doubles(&plain)?;
                    choose(&|a, b| values.value(a).total_cmp(&values.value(b)) == wanted);
                }
                other
                    if other.is_signed_integer()
                        || matches!(other, DataType::Timestamp(..) | DataType::Duration(_)) =>
                {
                    let values = cast(&plain, &DataType::Int64)?;
                    let values = values.as_primitive::<Int64Type>().values().clone();
                    choose(&|a, b| values[a].cmp(&values[b]) == wanted);
                }
                other => {
                    let converter = RowConverter::new(vec![SortField::new(other.clone())])?;
                    let rows = converter.convert_columns(std::slice::from_ref(&plain))?;
                    choose(&|a, b| rows.row(a).cmp(&rows.row(b)) == wanted);
                }
            }
        }
    }
    let rows: Vec<u32> = touched.iter().map(|id| chosen[*id as usize]).collect();
    for ((id, row), bytes) in touched.iter().zip(&rows).zip(in_bytes(array, &rows, data_type)?) {
        offer(&mut best[*id as usize], Some((bytes, rank + u64::from(*row))), kind);
    }
    Ok(())
}
