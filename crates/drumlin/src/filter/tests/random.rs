//! Random filters against the interpreter, in every physical form, and their verdicts against their rows.

use std::collections::HashMap;

use arrow::array::{Array, RecordBatch};

use super::data::{Column, ROWS, TEXTS, columns, stats};
use super::interpreter::{Datum, predicate};
use crate::filter::{Filter, Verdict};

#[derive(Debug)]
pub enum Predicate {
    Constant(Option<bool>),
    Flag(usize),
    Not(Box<Predicate>),
    And(Vec<Predicate>),
    Or(Vec<Predicate>),
    Compare(&'static str, Term, Term),
    CompareTruth(&'static str, Box<Predicate>, Box<Predicate>),
    In(Term, Vec<Literal>, bool),
    Between(Term, Term, Term, bool),
    IsNull(Term, bool),
    IsTruth(Box<Predicate>, bool, bool),
    Like { column: usize, pattern: String, escape: Option<char>, insensitive: bool, negated: bool },
}

#[derive(Debug)]
pub enum Term {
    Column(usize),
    Literal(Literal),
    Negate(Box<Term>),
    Arithmetic(char, Box<Term>, Box<Term>),
}

#[derive(Clone, Debug)]
pub struct Literal {
    pub text: String,
    pub value: Datum,
}

/// Which columns and literals are compatible, by column index.
#[derive(Clone, Copy)]
enum Family {
    Number,
    Text,
    Naive,
    Zoned,
    Binary,
}

const NAMES: [&str; 16] =
    ["i8", "i32", "i64", "u8", "u64", "f32", "f64", "dec", "text", "key", "flag", "date", "ms", "ns", "at", "bin"];
const OPS: [&str; 6] = ["=", "<>", "<", "<=", ">", ">="];

const NUMBERS: [&str; 40] = [
    "0",
    "1",
    "2",
    "3",
    "5",
    "7",
    "10",
    "127",
    "128",
    "129",
    "255",
    "256",
    "32768",
    "9007199254740992",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "10000000000000000000000000000000000000000",
    "0.0",
    "1.0",
    "0.5",
    "1.5",
    "0.05",
    "0.1",
    "1.27",
    "1.28",
    "1.2799",
    "0.01",
    "0.009",
    "1e2",
    "1e300",
    "1e400",
    "1e-400",
    "9007199254740993.0",
    "9007199254740992.5",
    "2.55",
    "127.5",
    "1.8446744073709552e19",
];

/// Text, seconds, nanoseconds, something finer; those with a zone last.
const MOMENTS: [(&str, i128, i128, bool); 14] = [
    ("1970-01-01", 0, 0, false),
    ("1970-01-01 00:00:00.0000015", 0, 1500, false),
    ("1970-01-01T00:00:00.0000000011", 0, 1, true),
    ("1969-12-31 23:59:59.9999999999", -1, 999_999_999, true),
    ("1969-12-31", -86_400, 0, false),
    ("1970-01-02 00:00:00", 86_400, 0, false),
    ("2020-02-29", 1_582_934_400, 0, false),
    ("2020-02-29 12:00", 1_582_977_600, 0, false),
    ("2020-02-29 12:00:00.000001", 1_582_977_600, 1000, false),
    ("9999-12-31", 253_402_214_400, 0, false),
    ("-0044-03-15", -63_549_360_000, 0, false),
    ("2020-02-29 12:00:00Z", 1_582_977_600, 0, false),
    ("2020-02-29 14:30:00.000001+02:30", 1_582_977_600, 1000, false),
    ("1969-12-31 22:00 -02", 0, 0, false),
];

struct Generator<'a> {
    random: &'a mut fastrand::Rng,
}

impl Generator<'_> {
    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.random.usize(..from.len())]
    }

    fn predicate(&mut self, depth: usize) -> Predicate {
        let some = |this: &mut Self| (0..this.random.usize(2..4)).map(|_| this.predicate(depth - 1)).collect();
        match self.random.u8(0..if depth > 0 { 20 } else { 14 }) {
            0 => Predicate::Flag(10),
            1 => Predicate::Constant(self.pick(&[None, Some(true), Some(false)])),
            2..=5 => {
                let (family, op) = (self.family(), self.pick(&OPS));
                let (left, right) = (self.term(family, 2), self.term(family, 2));
                if self.random.bool() {
                    Predicate::Compare(op, left, right)
                } else {
                    Predicate::Compare(op, self.column(family), Term::Literal(self.literal(family)))
                }
            }
            6 | 7 => {
                let family = self.family();
                let size = if self.random.u8(0..5) == 0 { 40 } else { self.random.usize(1..5) };
                let mut list = (0..size).map(|_| self.literal(family)).collect::<Vec<_>>();
                if self.random.u8(0..5) == 0 {
                    list.push(Literal { text: "null".to_owned(), value: Datum::Null });
                }
                let left = match self.term(family, 1) {
                    Term::Literal(_) => self.column(family),
                    term => term,
                };
                Predicate::In(left, list, self.random.bool())
            }
            8 | 9 => {
                let family = self.family();
                Predicate::Between(self.term(family, 1), self.term(family, 0), self.term(family, 0), self.random.bool())
            }
            10 | 11 => {
                let family = self.family();
                let inner = if self.random.bool() { self.column(family) } else { self.term(family, 2) };
                Predicate::IsNull(inner, self.random.bool())
            }
            12 | 13 => {
                let escape = self.pick(&[None, None, Some('!'), Some('\\')]);
                let mut pattern = String::new();
                for _ in 0..self.random.usize(0..5) {
                    match self.random.u8(0..6) {
                        0 | 1 => pattern.push('%'),
                        2 => pattern.push('_'),
                        3 if escape.is_some() => {
                            pattern.push(escape.unwrap());
                            pattern.push(self.pick(&['%', '_', '\\', 'a', '!']));
                        }
                        3 => pattern.push('\\'),
                        _ => {
                            let text = self.pick(&TEXTS);
                            let plain = text.chars().filter(|c| Some(*c) != escape);
                            pattern.extend(plain);
                        }
                    }
                }
                let insensitive = self.random.u8(0..3) == 0;
                Predicate::Like {
                    column: self.random.usize(8..10),
                    pattern,
                    escape,
                    insensitive,
                    negated: self.random.bool(),
                }
            }
            14 => Predicate::Not(Box::new(self.predicate(depth - 1))),
            15 | 16 => Predicate::And(some(self)),
            17 | 18 => Predicate::Or(some(self)),
            _ if self.random.bool() => {
                Predicate::IsTruth(Box::new(self.predicate(depth - 1)), self.random.bool(), self.random.bool())
            }
            _ => Predicate::CompareTruth(
                self.pick(&OPS),
                Box::new(self.predicate(depth - 1)),
                Box::new(self.predicate(depth - 1)),
            ),
        }
    }

    fn family(&mut self) -> Family {
        self.pick(&[
            Family::Number,
            Family::Number,
            Family::Number,
            Family::Text,
            Family::Naive,
            Family::Zoned,
            Family::Binary,
        ])
    }

    fn column(&mut self, family: Family) -> Term {
        Term::Column(match family {
            Family::Number => self.random.usize(0..8),
            Family::Text => self.random.usize(8..10),
            Family::Naive => self.random.usize(11..14),
            Family::Zoned => 14,
            Family::Binary => 15,
        })
    }

    fn term(&mut self, family: Family, depth: usize) -> Term {
        match (family, self.random.u8(0..6)) {
            (_, 0) => self.compared_literal(family),
            (Family::Number, 1 | 2) if depth > 0 => self.arithmetic(depth),
            _ => self.column(family),
        }
    }

    /// A typed, plain literal to compare with another literal, where texts are not instants and tiny numbers have no
    /// exact value here.
    fn compared_literal(&mut self, family: Family) -> Term {
        loop {
            let literal = self.literal(family);
            match &literal.value {
                Datum::Written { exact: None, .. } => {}
                Datum::Instant { .. } if literal.text.starts_with('\'') => {}
                _ => return Term::Literal(literal),
            }
        }
    }

    fn arithmetic(&mut self, depth: usize) -> Term {
        let mut operand = || match self.random.u8(0..6) {
            0 if depth > 0 => self.arithmetic(depth - 1),
            1 => Term::Literal(number(["0", "1", "2", "10", "0.5", "0.25", "3"][self.random.usize(0..7)])),
            _ => self.column(Family::Number),
        };
        let (left, right) = (operand(), operand());
        match self.random.u8(0..7) {
            0 if !matches!(left, Term::Literal(_)) => Term::Negate(Box::new(left)),
            _ => Term::Arithmetic(self.pick(&['+', '-', '*', '/', '%']), Box::new(left), Box::new(right)),
        }
    }

    fn literal(&mut self, family: Family) -> Literal {
        match family {
            Family::Number => {
                let literal = number(self.pick(&NUMBERS));
                match literal.value {
                    Datum::Written { nearest, exact, fractional } if self.random.u8(0..4) == 0 => Literal {
                        text: format!("-{}", literal.text),
                        value: Datum::Written {
                            nearest: -nearest,
                            exact: exact.map(|(value, scale)| (-value, scale)),
                            fractional,
                        },
                    },
                    _ => literal,
                }
            }
            Family::Text => {
                let text = self.pick(&TEXTS);
                Literal { text: format!("'{text}'"), value: Datum::Text(text.to_owned()) }
            }
            Family::Binary => {
                let text = self.pick(&TEXTS);
                Literal {
                    text: format!("x'{}'", text.bytes().map(|byte| format!("{byte:02X}")).collect::<String>()),
                    value: Datum::Binary(text.into()),
                }
            }
            Family::Naive | Family::Zoned => {
                let fit = if matches!(family, Family::Naive) { &MOMENTS[..11] } else { &MOMENTS[..] };
                let (text, seconds, nanos, finer) = fit[self.random.usize(..fit.len())];
                let prefix = match text.len() {
                    10 => self.pick(&["", "date ", "timestamp "]),
                    _ => self.pick(&["", "timestamp "]),
                };
                let value = Datum::Instant { nanos: seconds * 1_000_000_000 + nanos, finer };
                Literal { text: format!("{prefix}'{text}'"), value }
            }
        }
    }
}

fn number(text: &str) -> Literal {
    let fractional = text.contains(['.', 'e']);
    let exact = match text {
        "1e2" => Some((100, 0)),
        "1.8446744073709552e19" => Some((18_446_744_073_709_552_000, 0)),
        _ if text.contains('e') => None,
        _ => {
            let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
            let fraction = fraction.trim_end_matches('0');
            format!("{whole}{fraction}").parse().ok().map(|value| (value, fraction.len() as i32))
        }
    };
    Literal { text: text.to_owned(), value: Datum::Written { nearest: text.parse().unwrap(), exact, fractional } }
}

fn print(tree: &Predicate) -> String {
    let not = |negated: bool| if negated { "NOT " } else { "" };
    let join = |terms: &[Predicate], word: &str| {
        terms.iter().map(|term| format!("({})", print(term))).collect::<Vec<_>>().join(word)
    };
    match tree {
        Predicate::Constant(truth) => truth.map_or("null".to_owned(), |truth| truth.to_string()),
        Predicate::Flag(column) => NAMES[*column].to_owned(),
        Predicate::Not(inner) => format!("not ({})", print(inner)),
        Predicate::And(terms) => join(terms, " AND "),
        Predicate::Or(terms) => join(terms, " or "),
        Predicate::Compare(op, left, right) => format!("{} {op} {}", print_term(left), print_term(right)),
        Predicate::CompareTruth(op, left, right) => format!("({}) {op} ({})", print(left), print(right)),
        Predicate::In(left, list, negated) => {
            let list = list.iter().map(|literal| literal.text.clone()).collect::<Vec<_>>().join(",");
            format!("{} {}in ({list})", print_term(left), not(*negated))
        }
        Predicate::Between(left, low, high, negated) => {
            format!("{} {}between {} and {}", print_term(left), not(*negated), print_term(low), print_term(high))
        }
        Predicate::IsNull(inner, negated) => format!("{} is {}null", print_term(inner), not(*negated)),
        Predicate::IsTruth(inner, truth, negated) => format!("({}) is {}{truth}", print(inner), not(*negated)),
        Predicate::Like { column, pattern, escape, insensitive, negated } => {
            let escape = escape.map(|escape| format!(" escape '{escape}'")).unwrap_or_default();
            format!(
                "{} {}{} '{pattern}'{escape}",
                NAMES[*column],
                not(*negated),
                if *insensitive { "ilike" } else { "like" }
            )
        }
    }
}

fn print_term(tree: &Term) -> String {
    match tree {
        Term::Column(column) => NAMES[*column].to_owned(),
        Term::Literal(literal) => literal.text.clone(),
        Term::Negate(inner) => format!("(-{})", print_term(inner)),
        Term::Arithmetic(op, left, right) => format!("({} {op} {})", print_term(left), print_term(right)),
    }
}

fn batch_of(columns: &[Column], variant: bool, keep: &dyn Fn(usize) -> bool) -> RecordBatch {
    let kept = columns.iter().enumerate().filter(|(at, _)| keep(*at));
    let arrays = kept
        .map(|(_, column)| (column.name, if variant { column.variant.clone() } else { column.array.clone() }, true));
    RecordBatch::try_from_iter_with_nullable(arrays.chain([(
        "row",
        std::sync::Arc::new(arrow::array::NullArray::new(ROWS)) as _,
        true,
    )]))
    .unwrap()
}

#[test]
fn random_filters_agree_with_the_interpreter() {
    let rounds = std::env::var("FILTER_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(4_000u64);
    let mut seen = HashMap::<&str, u64>::new();
    for seed in 0..rounds {
        let mut random = fastrand::Rng::with_seed(seed);
        let columns = columns(&mut random);
        let batch = batch_of(&columns, false, &|_| true);
        for _ in 0..8 {
            let depth = random.usize(0..4);
            let tree = Generator { random: &mut random }.predicate(depth);
            let text = print(&tree);
            let expected = (0..ROWS)
                .map(|row| predicate(&tree, &columns.iter().map(|column| &column.values[row]).collect::<Vec<_>>()))
                .collect::<Result<Vec<_>, _>>();
            let filter = Filter::parse(&text).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            assert_eq!(Filter::parse(&filter.to_string()).unwrap(), filter, "seed {seed}: {text}");
            let bound = filter.bind(batch.schema_ref()).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            let Ok(expected) = expected else {
                *seen.entry("overflow").or_default() += 1;
                continue;
            };
            let needed = |at: usize| bound.columns().contains(&at);
            for (form, batch) in [
                ("plain", &batch),
                ("needed", &batch_of(&columns, false, &needed)),
                ("variant", &batch_of(&columns, true, &needed)),
            ] {
                let found =
                    bound.evaluate(batch).unwrap_or_else(|error| panic!("seed {seed}, {form}: {text}: {error}"));
                #[expect(clippy::needless_range_loop, reason = "the row is part of the message")]
                for row in 0..ROWS {
                    let found = found.is_valid(row).then(|| found.value(row));
                    let values = columns.iter().map(|column| (column.name, &column.values[row])).collect::<Vec<_>>();
                    assert_eq!(found, expected[row], "seed {seed}, {form}, row {row}: {text}\n{filter}\n{values:?}");
                }
            }
            // Empty and sliced batches.
            assert_eq!(bound.evaluate(&batch.slice(0, 0)).unwrap().len(), 0);
            let sliced = bound.evaluate(&batch.slice(7, 9)).unwrap();
            assert!(
                (0..9).all(|row| sliced.is_valid(row).then(|| sliced.value(row)) == expected[row + 7]),
                "seed {seed}, slice: {text}"
            );
            for loose in [false, true] {
                let known = columns
                    .iter()
                    .map(|column| (random.u8(0..10) > 0).then(|| stats(column, loose, &mut random)))
                    .collect::<Vec<_>>();
                let verdict = bound.verdict(ROWS as u64, &|index| known[index].clone());
                let matches = expected.iter().filter(|row| **row == Some(true)).count();
                let (name, sound) = match verdict {
                    Verdict::None => ("none", matches == 0),
                    Verdict::All => ("all", matches == ROWS),
                    Verdict::Some => ("some", true),
                };
                *seen.entry(name).or_default() += 1;
                assert!(sound, "seed {seed}, loose {loose}: {verdict:?} with {matches} matches: {text}\n{known:?}");
            }
        }
    }
    println!("{seen:?}");
    assert!(["none", "all", "some"].iter().all(|name| seen[name] > rounds / 20), "one-sided: {seen:?}");
}
