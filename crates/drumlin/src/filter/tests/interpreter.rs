//! A naive interpreter: one row at a time, on the values themselves, without a plan.

use std::cmp::Ordering;

use super::random::{Literal, Predicate, Term};

#[derive(Clone, Debug)]
pub enum Datum {
    Null,
    Bool(bool),
    /// Unscaled and scale.
    Exact(i128, i32),
    Float(f64),
    /// A number as written: its nearest float, and its exact value unless huge or tiny.
    Written {
        nearest: f64,
        exact: Option<(i128, i32)>,
        fractional: bool,
    },
    Text(String),
    Binary(Vec<u8>),
    /// `finer`: a bit more than `nanos`.
    Instant {
        nanos: i128,
        finer: bool,
    },
}

/// An exact result overflowed 128 bits.
pub struct Overflow;

type Truth = Option<bool>;

pub fn predicate(tree: &Predicate, row: &[&Datum]) -> Result<Truth, Overflow> {
    Ok(match tree {
        Predicate::Constant(truth) => *truth,
        Predicate::Flag(column) => truth(row[*column]),
        Predicate::Not(inner) => predicate(inner, row)?.map(|truth| !truth),
        Predicate::And(terms) => {
            let terms = terms.iter().map(|term| predicate(term, row)).collect::<Result<Vec<_>, _>>()?;
            if terms.contains(&Some(false)) {
                Some(false)
            } else if terms.contains(&None) {
                None
            } else {
                Some(true)
            }
        }
        Predicate::Or(terms) => {
            let terms = terms.iter().map(|term| predicate(term, row)).collect::<Result<Vec<_>, _>>()?;
            if terms.contains(&Some(true)) {
                Some(true)
            } else if terms.contains(&None) {
                None
            } else {
                Some(false)
            }
        }
        Predicate::Compare(op, left, right) => holds(op, &term(left, row)?, &term(right, row)?),
        Predicate::CompareTruth(op, left, right) => {
            predicate(left, row)?.zip(predicate(right, row)?).map(|(left, right)| answers(op, left.cmp(&right)))
        }
        Predicate::In(left, list, negated) => {
            let left = term(left, row)?;
            let found = list.iter().map(|literal| holds("=", &left, &literal.value)).collect::<Vec<_>>();
            let truth = if found.contains(&Some(true)) {
                Some(true)
            } else if found.contains(&None) {
                None
            } else {
                Some(false)
            };
            truth.map(|truth| truth != *negated)
        }
        Predicate::Between(left, low, high, negated) => {
            let left = term(left, row)?;
            let truth = match (holds(">=", &left, &term(low, row)?), holds("<=", &left, &term(high, row)?)) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            };
            truth.map(|truth| truth != *negated)
        }
        Predicate::IsNull(inner, negated) => Some(matches!(term(inner, row)?, Datum::Null) != *negated),
        Predicate::IsTruth(inner, truth, negated) => Some((predicate(inner, row)? == Some(*truth)) != *negated),
        Predicate::Like { column, pattern, escape, insensitive, negated } => match row[*column] {
            Datum::Text(text) => {
                let fold = |text: &str| if *insensitive { text.to_lowercase() } else { text.to_owned() };
                let (text, pattern) = (fold(text), fold(pattern));
                Some(like(&text.chars().collect::<Vec<_>>(), &pattern.chars().collect::<Vec<_>>(), *escape) != *negated)
            }
            _ => None,
        },
    })
}

fn truth(datum: &Datum) -> Truth {
    match datum {
        Datum::Bool(value) => Some(*value),
        _ => None,
    }
}

fn like(text: &[char], pattern: &[char], escape: Option<char>) -> bool {
    match pattern.split_first() {
        None => text.is_empty(),
        Some((c, rest)) if Some(*c) == escape => text.first() == rest.first() && like(&text[1..], &rest[1..], escape),
        Some(('%', rest)) => (0..=text.len()).any(|skip| like(&text[skip..], rest, escape)),
        Some(('_', rest)) => !text.is_empty() && like(&text[1..], rest, escape),
        Some((c, rest)) => text.first() == Some(c) && like(&text[1..], rest, escape),
    }
}

fn term(tree: &Term, row: &[&Datum]) -> Result<Datum, Overflow> {
    Ok(match tree {
        Term::Column(column) => row[*column].clone(),
        Term::Literal(Literal { value, .. }) => value.clone(),
        Term::Negate(inner) => match term(inner, row)? {
            Datum::Exact(value, scale) => Datum::Exact(-value, scale),
            Datum::Float(value) => Datum::Float(-value),
            Datum::Null => Datum::Null,
            Datum::Written { nearest, exact, fractional } => {
                Datum::Written { nearest: -nearest, exact: exact.map(|(value, scale)| (-value, scale)), fractional }
            }
            _ => unreachable!("only numbers are negated"),
        },
        Term::Arithmetic(op, left, right) => arithmetic(*op, term(left, row)?, term(right, row)?)?,
    })
}

fn arithmetic(op: char, left: Datum, right: Datum) -> Result<Datum, Overflow> {
    if matches!(left, Datum::Null) || matches!(right, Datum::Null) {
        return Ok(Datum::Null);
    }
    if let (Some((a, a_scale)), Some((b, b_scale)), true) = (exact(&left), exact(&right), op != '/') {
        let scale = a_scale.max(b_scale);
        let raise = |value: i128, by: i32| value.checked_mul(10i128.checked_pow((scale - by) as u32)?);
        let value = match op {
            '*' => return a.checked_mul(b).map(|value| Datum::Exact(value, a_scale + b_scale)).ok_or(Overflow),
            '%' if b == 0 => return Ok(Datum::Null),
            _ => raise(a, a_scale).zip(raise(b, b_scale)).and_then(|(a, b)| match op {
                '+' => a.checked_add(b),
                '-' => a.checked_sub(b),
                _ => a.checked_rem(b),
            }),
        };
        return value.map(|value| Datum::Exact(value, scale)).ok_or(Overflow);
    }
    let (a, b) = (float(&left), float(&right));
    Ok(match op {
        '/' | '%' if b == 0.0 => Datum::Null,
        '+' => Datum::Float(a + b),
        '-' => Datum::Float(a - b),
        '*' => Datum::Float(a * b),
        '/' => Datum::Float(a / b),
        _ => Datum::Float(a % b),
    })
}

fn exact(datum: &Datum) -> Option<(i128, i32)> {
    match datum {
        Datum::Exact(value, scale) => Some((*value, *scale)),
        Datum::Written { exact, .. } => *exact,
        _ => None,
    }
}

fn float(datum: &Datum) -> f64 {
    match datum {
        Datum::Exact(value, scale) => format!("{value}e-{scale}").parse().unwrap(),
        Datum::Float(value) | Datum::Written { nearest: value, .. } => *value,
        _ => unreachable!("not a number"),
    }
}

fn holds(op: &str, left: &Datum, right: &Datum) -> Truth {
    Some(answers(op, compare(left, right)?))
}

fn answers(op: &str, order: Ordering) -> bool {
    match op {
        "=" => order == Ordering::Equal,
        "<>" => order != Ordering::Equal,
        "<" => order == Ordering::Less,
        "<=" => order != Ordering::Greater,
        ">" => order == Ordering::Greater,
        _ => order != Ordering::Less,
    }
}

fn compare(left: &Datum, right: &Datum) -> Option<Ordering> {
    Some(match (left, right) {
        (Datum::Null, _) | (_, Datum::Null) => return None,
        (Datum::Bool(a), Datum::Bool(b)) => a.cmp(b),
        (Datum::Text(a), Datum::Text(b)) => a.as_bytes().cmp(b.as_bytes()),
        (Datum::Binary(a), Datum::Binary(b)) => a.cmp(b),
        (Datum::Instant { nanos: a, finer: x, .. }, Datum::Instant { nanos: b, finer: y, .. }) => (a, x).cmp(&(b, y)),
        (Datum::Written { .. }, Datum::Exact(..) | Datum::Float(_)) => compare(right, left)?.reverse(),
        (Datum::Exact(value, _), Datum::Written { nearest, exact: None, .. }) => match () {
            () if nearest.abs() > 1e30 => 0.0.partial_cmp(nearest).unwrap(),
            () => value.cmp(&0).then(0.0.partial_cmp(&if nearest.is_sign_negative() { -1.0 } else { 1.0 }).unwrap()),
        },
        (Datum::Float(a), Datum::Written { nearest, exact, fractional }) => match exact {
            Some((value, 0)) if !fractional => compare_exact_float(*value, *a).reverse(),
            _ if nearest.is_infinite() && a == nearest => {
                if *a > 0.0 {
                    Ordering::Greater
                } else {
                    Ordering::Less
                }
            }
            _ => compare_float(*a, *nearest),
        },
        (Datum::Float(a), Datum::Float(b)) => compare_float(*a, *b),
        (Datum::Exact(a, 0), Datum::Float(b)) => compare_exact_float(*a, *b),
        (Datum::Float(_), Datum::Exact(..)) => compare(right, left)?.reverse(),
        (Datum::Exact(..), Datum::Float(b)) => compare_float(float(left), *b),
        _ => match (exact(left), exact(right)) {
            (Some((a, a_scale)), Some((b, b_scale))) => {
                let split = |value: i128, scale: i32| {
                    (value.div_euclid(10i128.pow(scale as u32)), value.rem_euclid(10i128.pow(scale as u32)))
                };
                let (a, b) = (split(a, a_scale), split(b, b_scale));
                let scale = a_scale.max(b_scale);
                let raise = |fraction: i128, by: i32| fraction * 10i128.pow((scale - by) as u32);
                a.0.cmp(&b.0).then(raise(a.1, a_scale).cmp(&raise(b.1, b_scale)))
            }
            _ => unreachable!("{left:?} and {right:?} do not compare"),
        },
    })
}

fn compare_float(a: f64, b: f64) -> Ordering {
    match (a.is_nan(), b.is_nan()) {
        (true, true) => Ordering::Equal,
        (true, false) => Ordering::Greater,
        (false, true) => Ordering::Less,
        _ => a.partial_cmp(&b).unwrap(),
    }
}

fn compare_exact_float(a: i128, b: f64) -> Ordering {
    if b.is_nan() || b > 1e38 {
        return Ordering::Less;
    }
    if b < -1e38 {
        return Ordering::Greater;
    }
    a.cmp(&(b.trunc() as i128)).then(0.0.partial_cmp(&b.fract()).unwrap())
}
