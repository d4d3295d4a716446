//! The syntax tree of a filter, and its canonical text.
//!
//! Invariants: chains (`and`, `or`, sums, products) are flat, so depth is nesting in the text, bounded by the parser;
//! so recursion over the tree is safe on any stack. Printed text is never nested more deeply than the text parsed.

use std::collections::BTreeSet;
use std::fmt;

use arrow::datatypes::DataType;

use super::moment::Moment;
use super::names::written;
use super::number::Number;
use super::scalar::ScalarFunction;
use crate::base::TypeName;

#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// A column, or a field within struct columns.
    Column(Vec<String>),
    Literal(Literal),
    Not(Box<Expr>),
    And(Vec<Expr>),
    Or(Vec<Expr>),
    Compare {
        op: CompareOp,
        left: Box<Expr>,
        right: Box<Expr>,
    },
    Between {
        expr: Box<Expr>,
        negated: bool,
        low: Box<Expr>,
        high: Box<Expr>,
    },
    In {
        expr: Box<Expr>,
        negated: bool,
        list: Vec<Literal>,
    },
    Like {
        expr: Box<Expr>,
        negated: bool,
        insensitive: bool,
        pattern: Literal,
        escape: Option<char>,
    },
    IsNull {
        expr: Box<Expr>,
        negated: bool,
    },
    IsTruth {
        expr: Box<Expr>,
        negated: bool,
        truth: bool,
    },
    Negate(Box<Expr>),
    /// `first op x op y`, from left to right; all operators of one precedence.
    Chain {
        first: Box<Expr>,
        rest: Vec<(ArithmeticOp, Expr)>,
    },
    Call {
        function: ScalarFunction,
        args: Vec<Expr>,
    },
    /// A value in another type. If `lenient`, what has none in it is null.
    Cast {
        expr: Box<Expr>,
        data_type: DataType,
        lenient: bool,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    Binary(Vec<u8>),
    Moment(Moment),
    /// A float that no number is, as in `double 'nan'`: its text. A text alone may be one, or a text.
    Double(String),
    /// A duration, as in `interval '90 s'`: its text. A text alone may be one, or a text.
    Interval(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompareOp {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArithmeticOp {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

impl CompareOp {
    /// The operator with its operands exchanged.
    pub fn flipped(self) -> Self {
        match self {
            Self::Lt => Self::Gt,
            Self::Le => Self::Ge,
            Self::Gt => Self::Lt,
            Self::Ge => Self::Le,
            same => same,
        }
    }

    pub fn holds(self, order: std::cmp::Ordering) -> bool {
        match self {
            Self::Eq => order.is_eq(),
            Self::Ne => order.is_ne(),
            Self::Lt => order.is_lt(),
            Self::Le => order.is_le(),
            Self::Gt => order.is_gt(),
            Self::Ge => order.is_ge(),
        }
    }

    pub fn symbol(self) -> &'static str {
        match self {
            Self::Eq => "=",
            Self::Ne => "<>",
            Self::Lt => "<",
            Self::Le => "<=",
            Self::Gt => ">",
            Self::Ge => ">=",
        }
    }
}

impl ArithmeticOp {
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Remainder => "%",
        }
    }

    pub fn is_sum(self) -> bool {
        matches!(self, Self::Add | Self::Subtract)
    }
}

/// How tightly an expression binds; an operand that binds less tightly is put in parentheses.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Binding {
    Or,
    And,
    Not,
    Predicate,
    Sum,
    Product,
    Unary,
    Atom,
}

impl Expr {
    pub fn collect_columns(&self, names: &mut BTreeSet<String>) {
        self.each_column(&mut |path| names.extend(path.first().cloned()));
    }

    /// The fields of the struct column `of` that it refers to.
    pub fn fields_of(&self, of: &str) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        self.each_column(&mut |path| match path {
            [root, field, ..] if root == of => drop(names.insert(field.clone())),
            _ => {}
        });
        names
    }

    fn each_column(&self, found: &mut dyn FnMut(&[String])) {
        match self {
            Expr::Column(path) => found(path),
            Expr::Literal(_) => {}
            Expr::Not(expr) | Expr::Negate(expr) => expr.each_column(found),
            Expr::And(terms) | Expr::Or(terms) => terms.iter().for_each(|term| term.each_column(found)),
            Expr::Compare { left, right, .. } => {
                left.each_column(found);
                right.each_column(found);
            }
            Expr::Between { expr, low, high, .. } => {
                [expr, low, high].into_iter().for_each(|part| part.each_column(found))
            }
            Expr::Call { args, .. } => args.iter().for_each(|arg| arg.each_column(found)),
            Expr::In { expr, .. }
            | Expr::Cast { expr, .. }
            | Expr::Like { expr, .. }
            | Expr::IsNull { expr, .. }
            | Expr::IsTruth { expr, .. } => {
                expr.each_column(found);
            }
            Expr::Chain { first, rest } => {
                first.each_column(found);
                rest.iter().for_each(|(_, term)| term.each_column(found));
            }
        }
    }

    fn binding(&self) -> Binding {
        match self {
            Expr::Column(_) | Expr::Literal(_) | Expr::Call { .. } | Expr::Cast { .. } => Binding::Atom,
            Expr::Not(_) => Binding::Not,
            Expr::And(_) => Binding::And,
            Expr::Or(_) => Binding::Or,
            Expr::Negate(_) => Binding::Unary,
            Expr::Chain { rest, .. } if rest.iter().all(|(op, _)| op.is_sum()) => Binding::Sum,
            Expr::Chain { .. } => Binding::Product,
            _ => Binding::Predicate,
        }
    }

    fn print(&self, f: &mut fmt::Formatter<'_>, least: Binding) -> fmt::Result {
        if self.binding() < least { write!(f, "({self})") } else { write!(f, "{self}") }
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let not = |negated: bool| if negated { "not " } else { "" };
        match self {
            Expr::Column(path) => f.write_str(&path.iter().map(|name| written(name)).collect::<Vec<_>>().join(".")),
            Expr::Literal(literal) => literal.fmt(f),
            Expr::Not(expr) => {
                f.write_str("not ")?;
                expr.print(f, Binding::Not)
            }
            Expr::And(terms) | Expr::Or(terms) => {
                let (word, least) =
                    if matches!(self, Expr::And(_)) { (" and ", Binding::Not) } else { (" or ", Binding::And) };
                for (at, term) in terms.iter().enumerate() {
                    f.write_str(if at > 0 { word } else { "" })?;
                    term.print(f, least)?;
                }
                Ok(())
            }
            Expr::Compare { op, left, right } => {
                left.print(f, Binding::Sum)?;
                write!(f, " {} ", op.symbol())?;
                right.print(f, Binding::Sum)
            }
            Expr::Between { expr, negated, low, high } => {
                expr.print(f, Binding::Sum)?;
                write!(f, " {}between ", not(*negated))?;
                low.print(f, Binding::Sum)?;
                f.write_str(" and ")?;
                high.print(f, Binding::Sum)
            }
            Expr::In { expr, negated, list } => {
                expr.print(f, Binding::Sum)?;
                write!(f, " {}in (", not(*negated))?;
                for (at, literal) in list.iter().enumerate() {
                    write!(f, "{}{literal}", if at > 0 { ", " } else { "" })?;
                }
                f.write_str(")")
            }
            Expr::Like { expr, negated, insensitive, pattern, escape } => {
                expr.print(f, Binding::Sum)?;
                write!(f, " {}{} {pattern}", not(*negated), if *insensitive { "ilike" } else { "like" })?;
                match escape {
                    Some(escape) => write!(f, " escape {}", Literal::Text(escape.to_string())),
                    None => Ok(()),
                }
            }
            Expr::IsNull { expr, negated } => {
                expr.print(f, Binding::Sum)?;
                write!(f, " is {}null", not(*negated))
            }
            Expr::IsTruth { expr, negated, truth } => {
                expr.print(f, Binding::Sum)?;
                write!(f, " is {}{truth}", not(*negated))
            }
            Expr::Negate(expr) => {
                f.write_str("-")?;
                expr.print(f, Binding::Atom)
            }
            Expr::Chain { first, rest } => {
                let sum = self.binding() == Binding::Sum;
                first.print(f, if sum { Binding::Sum } else { Binding::Product })?;
                for (op, term) in rest {
                    write!(f, " {} ", op.symbol())?;
                    term.print(f, if sum { Binding::Product } else { Binding::Unary })?;
                }
                Ok(())
            }
            Expr::Call { function, args } => {
                write!(f, "{}(", function.name())?;
                for (at, arg) in args.iter().enumerate() {
                    write!(f, "{}{arg}", if at > 0 { ", " } else { "" })?;
                }
                f.write_str(")")
            }
            Expr::Cast { expr, data_type, lenient } => {
                let type_name = TypeName(data_type).to_string();
                let quoted = Literal::Text(type_name.clone()).to_string();
                let plain = type_name.bytes().all(|byte| byte.is_ascii_alphanumeric());
                let word = if *lenient { "try_cast" } else { "cast" };
                write!(f, "{word}({expr} as {})", if plain { type_name } else { quoted })
            }
        }
    }
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Literal::Null => f.write_str("null"),
            Literal::Bool(value) => value.fmt(f),
            Literal::Number(number) => number.fmt(f),
            Literal::Text(text) => write!(f, "'{}'", text.replace('\'', "''")),
            Literal::Binary(bytes) => {
                f.write_str("x'")?;
                bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
                f.write_str("'")
            }
            Literal::Moment(moment) => moment.fmt(f),
            Literal::Double(text) => write!(f, "double '{text}'"),
            Literal::Interval(text) => write!(f, "interval '{text}'"),
        }
    }
}
