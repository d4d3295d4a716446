//! What is known of groups while rows come: one state an aggregate, with a place for each group.

use std::collections::HashSet;
use std::fmt::Display;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Decimal128Array, Float64Array, Int64Array, UInt64Array};
use arrow::buffer::NullBuffer;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Decimal32Type, Decimal128Type, Int32Type, Int64Type, UInt64Type};

use super::best::{
    BestNumber, Bytes, NOWHERE, Selector, add_best, add_numbers, doubles, each, from_bytes, from_keys, has_keys,
    in_bytes, offer,
};
use super::codes::{Combinations, RowCodes, plain_double};
use super::exact::{ExactSum, WideSum, variance};
use super::plan::{Bound, Function, scale_of};
use crate::base::{Error, Result, TypeName};
use crate::filter::{narrow_integers, plain_values};

/// Where groups are.
#[derive(Debug)]
pub enum AggregateState {
    Count(Vec<u64>),
    /// Values of each group, and how much memory the values take.
    Distinct(Vec<HashSet<Bytes>>, DataType, usize),
    Integers(Vec<Sum<WideSum>>),
    Floats(Vec<Sum<ExactSum>>),
    /// The sum, that of squares, and of how many values.
    Squares(Vec<(ExactSum, ExactSum)>, Vec<u64>),
    /// The sum of products with weights, and that of weights.
    Weighted(Vec<(ExactSum, ExactSum)>, Vec<u64>),
    /// All values.
    Values(Vec<Vec<f64>>),
    /// The best value so far, of a type of at most 64 bits.
    Number(Vec<BestNumber>, Selector),
    /// The best value so far, and where it came from.
    Best(Vec<Option<(Bytes, u64)>>, Selector, DataType),
    /// Whether there was a `true`, and a `false`.
    Truth(Vec<(bool, bool)>),
}

/// The sum of some values, and how many there are.
#[derive(Clone, Debug, Default)]
pub struct Sum<T> {
    pub sum: T,
    pub n: u64,
}

/// About how much memory an entry of a set of values takes, without the value.
const ENTRY: usize = 40;

/// Numbers that are added up.
fn is_integer(data_type: &DataType) -> bool {
    data_type.is_integer() || *data_type == DataType::Boolean || scale_of(data_type).is_some()
}

impl AggregateState {
    /// For an aggregate of values of type `data_type`.
    pub fn new(function: &Function, data_type: &DataType) -> Self {
        let best = |kind| match has_keys(data_type) {
            true => Self::Number(Vec::new(), kind),
            false => Self::Best(Vec::new(), kind, data_type.clone()),
        };
        match function {
            Function::Count => Self::Count(Vec::new()),
            Function::CountDistinct => Self::Distinct(Vec::new(), data_type.clone(), 0),
            Function::Sum | Function::Mean if is_integer(data_type) => Self::Integers(Vec::new()),
            Function::Sum | Function::Mean => Self::Floats(Vec::new()),
            Function::Std | Function::Var => Self::Squares(Vec::new(), Vec::new()),
            Function::WeightedMean(_) => Self::Weighted(Vec::new(), Vec::new()),
            Function::Quantile(_) => Self::Values(Vec::new()),
            Function::Min => best(Selector::Least),
            Function::Max => best(Selector::Greatest),
            Function::First => best(Selector::First),
            Function::Last => best(Selector::Last),
            Function::Any | Function::All => Self::Truth(Vec::new()),
        }
    }

    /// In how many places what the rows of a batch add up to is best found before it is added to the groups: several, if additions
    /// wait for each other, and one, if groups that the batch does not have would cost time.
    pub fn places(&self) -> Option<usize> {
        match self {
            Self::Count(_)
            | Self::Integers(_)
            | Self::Floats(_)
            | Self::Squares(..)
            | Self::Weighted(..)
            | Self::Number(..) => Some(4),
            Self::Best(..) => Some(1),
            Self::Distinct(..) | Self::Values(_) | Self::Truth(_) => None,
        }
    }

    /// About how much memory the largest group takes, of what grows with its rows.
    pub fn largest(&self) -> usize {
        match self {
            Self::Values(all) => all.iter().map(|values| values.capacity() * size_of::<f64>()).max().unwrap_or(0),
            Self::Distinct(sets, ..) => sets.iter().map(|set| set.len() * ENTRY).max().unwrap_or(0),
            _ => 0,
        }
    }

    /// Adds rows that have each one of some places, of which `groups` says the group, `counts` the number of rows; `false`, with nothing
    /// added, if that is not faster than to add them to another state that is merged.
    pub fn add_places(&mut self, places: &[u32], groups: &[u32], counts: &[u64], values: &[ArrayRef]) -> Result<bool> {
        match (self, values) {
            (Self::Count(n), []) => {
                groups.iter().zip(counts).for_each(|(group, count)| n[*group as usize] += count);
                Ok(true)
            }
            (Self::Integers(sums), [array]) if array.null_count() == 0 => {
                let Some(small) = small_sums(array, places, groups.len()) else { return Ok(false) };
                for ((small, group), count) in small.into_iter().zip(groups).zip(counts) {
                    let sum = &mut sums[*group as usize];
                    sum.sum.add(small.into());
                    sum.n += count;
                }
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Makes places for new groups.
    pub fn grow(&mut self, groups: usize) {
        match self {
            Self::Count(n) => n.resize(groups, 0),
            Self::Distinct(sets, ..) => sets.resize_with(groups, HashSet::new),
            Self::Integers(sums) => sums.resize(groups, Sum::default()),
            Self::Floats(sums) => sums.resize(groups, Sum::default()),
            Self::Number(best, kind) => best.resize(groups, kind.none()),
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
            (_, None) => return Err(Error::invalid("the aggregate needs a column")),
            (Self::Integers(sums), Some(array)) => add_integers(sums, ids, &plain_values(array)?)?,
            (Self::Floats(sums), Some(array)) => {
                let values = doubles(array)?;
                each(values.values(), values.nulls(), ids, |id, value| {
                    sums[id].sum.add(value);
                    sums[id].n += 1;
                });
            }
            (Self::Number(best, kind), Some(array)) => add_numbers(best, *kind, ids, &plain_values(array)?, rank)?,
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
                let values = doubles(array)?;
                each(values.values(), values.nulls(), ids, |id, value| all[id].push(plain_double(value)));
            }
            (Self::Truth(truth), Some(array)) => {
                let array = cast(array, &DataType::Boolean)?;
                for (value, id) in array.as_boolean().iter().zip(ids) {
                    let (any, not_all) = &mut truth[*id as usize];
                    (*any, *not_all) = (*any || value == Some(true), *not_all || value == Some(false));
                }
            }
            (Self::Distinct(sets, data_type, memory), Some(array)) => {
                let groups = RowCodes { of_rows: ids.to_vec(), distinct: sets.len() };
                let found = Combinations::of(&[&groups, &RowCodes::of(array)?], array.len());
                let (rows, nulls) = (in_bytes(array, &found.first, data_type)?, array.logical_nulls());
                for (first, bytes) in found.first.iter().zip(rows) {
                    if nulls.as_ref().is_none_or(|nulls| nulls.is_valid(*first as usize)) {
                        let length = bytes.len();
                        if sets[ids[*first as usize] as usize].insert(bytes) {
                            *memory += ENTRY + length;
                        }
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
            (Self::Distinct(sets, _, memory), Self::Distinct(more, _, theirs)) => {
                // Too much, if both know the same values.
                *memory += theirs;
                for (at, more) in more.into_iter().enumerate() {
                    let set = &mut sets[to(at)];
                    if set.is_empty() {
                        *set = more;
                    } else {
                        set.extend(more);
                    }
                }
            }
            (Self::Integers(sums), Self::Integers(more)) => {
                for (at, more) in more.into_iter().enumerate() {
                    let sum = &mut sums[to(at)];
                    sum.sum.merge(&more.sum);
                    sum.n += more.n;
                }
            }
            (Self::Floats(sums), Self::Floats(more)) => {
                for (at, more) in more.iter().enumerate() {
                    sums[to(at)].sum.merge(&more.sum);
                    sums[to(at)].n += more.n;
                }
            }
            (Self::Number(best, kind), Self::Number(more, _)) => {
                for (at, more) in more.into_iter().enumerate() {
                    best[to(at)] = kind.better(best[to(at)], more);
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
    pub fn finish(&mut self, groups: &[u32], bound: &Bound, result: &DataType) -> Result<ArrayRef> {
        let function = &bound.function;
        let groups = || groups.iter().map(|group| *group as usize);
        let floats =
            |of: &mut dyn FnMut(usize) -> Option<f64>| Arc::new(groups().map(of).collect::<Float64Array>()) as ArrayRef;
        Ok(match self {
            Self::Count(n) => counts(groups().map(|at| n[at])),
            Self::Distinct(sets, ..) => counts(groups().map(|at| sets[at].len() as u64)),
            Self::Integers(sums) if *function == Function::Mean => {
                let scale = scale_of(&bound.data_type).unwrap_or(0);
                floats(&mut |at| (sums[at].n > 0).then(|| sums[at].sum.mean(sums[at].n, scale)))
            }
            Self::Integers(sums) => integers(groups().map(|at| (sums[at].n > 0).then_some(sums[at].sum)), result)?,
            Self::Floats(sums) => floats(&mut |at| {
                let Sum { sum, n } = &sums[at];
                (*n > 0).then(|| if *function == Function::Mean { sum.mean(*n) } else { sum.value() })
            }),
            Self::Number(best, _) => {
                from_keys(groups().map(|at| Some(best[at].key).filter(|_| best[at].rank != NOWHERE)).collect(), result)?
            }
            Self::Squares(sums, n) => floats(&mut |at| {
                let root = *function == Function::Std;
                (n[at] > 1).then(|| variance(n[at], &sums[at].0, &sums[at].1, root))
            }),
            Self::Weighted(sums, n) => floats(&mut |at| {
                let (products, weights) = &sums[at];
                (n[at] > 0).then(|| products.quotient(weights)).flatten()
            }),
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
            Self::Distinct(sets, _, memory) => sets.len() * size_of::<HashSet<Bytes>>() + memory,
            Self::Integers(sums) => sums.len() * size_of::<Sum<WideSum>>(),
            Self::Floats(sums) => sums.iter().map(|sum| size_of::<Sum<ExactSum>>() + sum.sum.extra_bytes()).sum(),
            Self::Number(best, _) => best.len() * size_of::<BestNumber>(),
            Self::Squares(sums, _) | Self::Weighted(sums, _) => {
                sums.iter().map(|(a, b)| 2 * size_of::<ExactSum>() + 8 + a.extra_bytes() + b.extra_bytes()).sum()
            }
            Self::Values(all) => all.iter().map(|values| 24 + values.capacity() * 8).sum(),
            Self::Best(best, ..) => {
                best.iter().map(|best| 24 + best.as_ref().map_or(0, |(bytes, _)| bytes.len() + 16)).sum()
            }
            Self::Truth(truth) => truth.len() * 2,
        }
    }
}

fn counts(n: impl Iterator<Item = u64>) -> ArrayRef {
    Arc::new(n.map(u64::cast_signed).collect::<Int64Array>())
}

/// The sums of integers by place, if all are known to fit into 64 bits.
fn small_sums(array: &ArrayRef, places: &[u32], count: usize) -> Option<Vec<i64>> {
    let mut sums = vec![0_i64; count];
    let rows_bits = array.len().checked_ilog2().unwrap_or(0) + 1;
    if rows_bits > 31 {
        return None;
    }
    let mut add = |place: &u32, value: i64| sums[*place as usize] += value;
    let halves = match array.data_type() {
        DataType::Int32 => array.as_primitive::<Int32Type>().values(),
        DataType::Decimal32(..) => array.as_primitive::<Decimal32Type>().values(),
        _ => {
            let values = narrow_integers(array)?;
            let bits = values.iter().fold(0, |bits, value| bits | (value ^ (value >> 63)));
            if bits.leading_zeros() < rows_bits + 1 {
                return None;
            }
            places.iter().zip(&values).for_each(|(place, value)| add(place, *value));
            return Some(sums);
        }
    };
    places.iter().zip(halves).for_each(|(place, value)| add(place, i64::from(*value)));
    Some(sums)
}

/// Adds what is counted without fractions.
fn add_integers(sums: &mut [Sum<WideSum>], ids: &[u32], array: &ArrayRef) -> Result<()> {
    if let Some(values) = narrow_integers(array) {
        each(&values, array.nulls(), ids, |id, value| {
            sums[id].sum.add(value.into());
            sums[id].n += 1;
        });
        return Ok(());
    }
    let mut add = |id: usize, value: i128| {
        sums[id].sum.add(value);
        sums[id].n += 1;
    };
    match array.data_type() {
        DataType::Decimal128(..) => {
            each(array.as_primitive::<Decimal128Type>().values(), array.nulls(), ids, add);
        }
        DataType::UInt64 => {
            let values = array.as_primitive::<UInt64Type>().values();
            each(values, array.nulls(), ids, |id, value| add(id, i128::from(value)));
        }
        _ => {
            let array = cast(array, &DataType::Int64)?;
            let array: &Int64Array = array.as_primitive::<Int64Type>();
            each(array.values(), array.nulls(), ids, |id, value| add(id, i128::from(value)));
        }
    }
    Ok(())
}

fn integers(sums: impl Iterator<Item = Option<WideSum>>, result: &DataType) -> Result<ArrayRef> {
    let beyond = |sum: &dyn Display| {
        Error::invalid(format!(
            "the sum of a group is {sum} (in units of the last decimal place), which does not fit into {}; sum a \
             calculation instead, such as `column * 1.0` for integers or `column / 1` for decimals",
            TypeName(result)
        ))
    };
    let sums = sums.map(|sum| sum.map(|sum| sum.value().map_err(|sum| beyond(&sum))).transpose());
    Ok(match result {
        DataType::UInt64 => {
            let fit = |sum: i128| u64::try_from(sum).map_err(|_| beyond(&sum));
            Arc::new(sums.map(|sum| sum?.map(fit).transpose()).collect::<Result<UInt64Array>>()?)
        }
        DataType::Decimal128(precision, scale) => {
            let greatest = 10_i128.pow(u32::from(*precision)) - 1;
            let fit = |sum: i128| if sum.abs() <= greatest { Ok(sum) } else { Err(beyond(&sum)) };
            let fitting = sums.map(|sum| sum?.map(fit).transpose()).collect::<Result<Decimal128Array>>()?;
            Arc::new(fitting.with_precision_and_scale(*precision, *scale)?)
        }
        _ => {
            let fit = |sum: i128| i64::try_from(sum).map_err(|_| beyond(&sum));
            Arc::new(sums.map(|sum| sum?.map(fit).transpose()).collect::<Result<Int64Array>>()?)
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
    Some(match high - low {
        distance if low == high || distance == 0.0 => low,
        distance if distance.is_finite() => low + distance * rest,
        _ => low * (1.0 - rest) + high * rest,
    })
}
