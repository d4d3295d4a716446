//! The bound form of a filter: columns, kinds, and literals in their column's domain.
//!
//! Invariant: every node yields one of three truth values per row; every value has one kind, known here.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

use super::kind::{DomainLiteral, Kind};
use super::text::number::Floor;
use super::text::syntax::{ArithmeticOp, CompareOp};

#[derive(Clone, Debug)]
pub enum Predicate {
    Constant(Option<bool>),
    And(Vec<Predicate>),
    Or(Vec<Predicate>),
    Not(Box<Predicate>),
    /// Never null: whether the node is this truth value (`None`: unknown).
    IsTruth(Box<Predicate>, Option<bool>),
    /// Never null.
    IsNull(ScalarExpression),
    /// A boolean column.
    Flag(ColumnRef),
    /// Tests a value against literals; null where the value is null.
    Test(ScalarExpression, Test),
    CompareValues {
        op: CompareOp,
        left: ScalarExpression,
        right: ScalarExpression,
    },
    CompareBytes {
        op: CompareOp,
        left: ColumnRef,
        right: ColumnRef,
    },
    CompareTruth {
        op: CompareOp,
        left: Box<Predicate>,
        right: Box<Predicate>,
    },
}

/// A column of the bound schema, or a field below it.
#[derive(Clone, Debug)]
pub struct ColumnRef {
    /// In the bound schema.
    pub index: usize,
    pub path: Vec<String>,
    pub kind: Option<Kind>,
}

/// A value that is computed row by row.
#[derive(Clone, Debug)]
pub enum ScalarExpression {
    Column(ColumnRef),
    Number { value: i128, scale: i32 },
    Float(f64),
    Negate(Box<ScalarExpression>),
    Chain { first: Box<ScalarExpression>, rest: Vec<(ArithmeticOp, ScalarExpression)> },
}

/// A test of one non-null value. Keys are values of the kind's domain, floats as `float_key`.
#[derive(Clone, Debug)]
pub enum Test {
    Constant(bool),
    Key(CompareOp, i128),
    Bytes(CompareOp, Vec<u8>),
    Keys(KeySet),
    ByteStrings(ByteSet),
    Like(LikePattern),
}

#[derive(Clone, Debug)]
pub struct KeySet {
    pub sorted: Vec<i128>,
    pub hashed: HashSet<i128, BuildHasherDefault<KeyHasher>>,
}

#[derive(Clone, Debug)]
pub struct ByteSet {
    pub sorted: Vec<Vec<u8>>,
    pub hashed: HashSet<Vec<u8>>,
}

/// A pattern in the form of Arrow's kernels, whose escape character is always the backslash.
#[derive(Clone, Debug)]
pub struct LikePattern {
    pub text: String,
    pub insensitive: bool,
    /// The prefix of every match; empty if unknown.
    pub prefix: Vec<u8>,
    /// Whether everything with this prefix matches.
    pub prefix_only: bool,
}

impl Test {
    /// A comparison with a literal, expressed as one with its floor.
    pub fn compare(op: CompareOp, placed: DomainLiteral) -> Test {
        match placed {
            DomainLiteral::Bytes(bytes) => Test::Bytes(op, bytes),
            DomainLiteral::Key((floor, exact)) => Self::compare_floor(op, (floor, exact)),
        }
    }

    fn compare_floor(op: CompareOp, (floor, exact): Floor<i128>) -> Test {
        match op {
            op if exact => Test::Key(op, floor),
            CompareOp::Lt | CompareOp::Le => Test::Key(CompareOp::Le, floor),
            CompareOp::Gt | CompareOp::Ge => Test::Key(CompareOp::Gt, floor),
            CompareOp::Eq => Test::Constant(false),
            CompareOp::Ne => Test::Constant(true),
        }
    }

    /// Membership among literals; those between two values of the domain match nothing.
    pub fn among(list: Vec<DomainLiteral>) -> Test {
        let mut keys = Vec::new();
        let mut strings = Vec::new();
        for placed in list {
            match placed {
                DomainLiteral::Key((key, true)) => keys.push(key),
                DomainLiteral::Key(_) => {}
                DomainLiteral::Bytes(bytes) => strings.push(bytes),
            }
        }
        keys.sort_unstable();
        keys.dedup();
        strings.sort_unstable();
        strings.dedup();
        match (keys.as_slice(), strings.as_slice()) {
            ([], []) => Test::Constant(false),
            ([key], []) => Test::Key(CompareOp::Eq, *key),
            ([], [bytes]) => Test::Bytes(CompareOp::Eq, bytes.clone()),
            ([], _) => Test::ByteStrings(ByteSet { hashed: strings.iter().cloned().collect(), sorted: strings }),
            _ => Test::Keys(KeySet { hashed: keys.iter().copied().collect(), sorted: keys }),
        }
    }

    /// Whether a key passes.
    pub fn holds(&self, key: i128) -> bool {
        match self {
            Test::Constant(answer) => *answer,
            Test::Key(op, bound) => op.holds(key.cmp(bound)),
            Test::Keys(set) => set.hashed.contains(&key),
            Test::Bytes(..) | Test::ByteStrings(_) | Test::Like(_) => unreachable!("tests of bytes meet no numbers"),
        }
    }
}

impl LikePattern {
    /// Translates an SQL pattern; `None` for one without wildcards, which matches exactly the returned text.
    pub fn new(pattern: &str, escape: Option<char>, insensitive: bool) -> (Option<LikePattern>, String) {
        let (mut text, mut prefix) = (String::new(), String::new());
        let mut wildcards = String::new();
        let mut chars = pattern.chars();
        while let Some(c) = chars.next() {
            let plain = if Some(c) == escape {
                chars.next().expect("checked by the parser")
            } else if c == '%' || c == '_' {
                wildcards.push(c);
                text.push(c);
                continue;
            } else {
                c
            };
            if matches!(plain, '%' | '_' | '\\') {
                text.push('\\');
            }
            text.push(plain);
            if wildcards.is_empty() {
                prefix.push(plain);
            } else {
                // Something follows a wildcard: the prefix alone does not decide a match.
                wildcards.push('.');
            }
        }
        if wildcards.is_empty() && !insensitive {
            return (None, prefix);
        }
        let prefix_only = !insensitive && wildcards.bytes().all(|wildcard| wildcard == b'%');
        let prefix = if insensitive { String::new() } else { prefix };
        (Some(LikePattern { text, insensitive, prefix: prefix.into_bytes(), prefix_only }), String::new())
    }
}

impl ScalarExpression {
    /// The kind of the value: a decimal at the scale that results from its operators, or a float.
    pub fn kind(&self) -> Option<Kind> {
        match self {
            ScalarExpression::Column(column) => column.kind,
            ScalarExpression::Number { scale, .. } => Some(Kind::Number { scale: *scale }),
            ScalarExpression::Float(_) => Some(Kind::Float),
            ScalarExpression::Negate(value) => value.kind(),
            ScalarExpression::Chain { first, rest } => {
                rest.iter().try_fold(first.kind()?, |kind, (op, term)| Some(op.result(kind, term.kind()?)))
            }
        }
    }
}

impl ArithmeticOp {
    /// The kind of a result. Division of integers gives a float, as in DuckDB.
    fn result(self, left: Kind, right: Kind) -> Kind {
        match (left, right) {
            (Kind::Number { scale: a }, Kind::Number { scale: b }) => match self {
                ArithmeticOp::Divide => Kind::Float,
                ArithmeticOp::Multiply => Kind::Number { scale: a + b },
                _ => Kind::Number { scale: a.max(b) },
            },
            _ => Kind::Float,
        }
    }
}

/// Mixes a key by one multiplication: keys come from the caller's own literals, so hash flooding is no concern.
#[derive(Clone, Copy, Debug, Default)]
pub struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        }
    }

    fn write_i128(&mut self, key: i128) {
        let mixed = u128::from(key as u64 ^ (key >> 64) as u64) * 0x9E37_79B9_7F4A_7C15;
        self.0 = (mixed >> 64) as u64 ^ mixed as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
