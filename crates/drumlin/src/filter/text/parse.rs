//! Text to syntax tree, by the `sqlparser` crate.
//!
//! Invariants: words are checked before the parser runs, and nesting is bounded by [`DEPTH_MAX`], in the parser and here.
//! Left-deep chains are flattened by a loop. Errors name what the language does not support.

use std::fmt::{self, Write as _};

use sqlparser::ast::{
    BinaryOperator, CastKind, DataType, Expr as Sql, Function, FunctionArg, FunctionArgExpr, FunctionArguments,
    Interval, TimezoneInfo, UnaryOperator, Value, ValueWithSpan,
};
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, Tokenizer};

use super::functions;
use super::moment::Moment;
use super::names::{clip, quotes};
use super::number::Number;
use super::span;
use super::syntax::{ArithmeticOp, CompareOp, Expr, Literal};
use super::words::{DEPTH_MAX, FilterDialect, PARSER_DEPTH_MAX, check_tokens};
use crate::base::{Error, Result, parse_type};
use crate::filter::kind::special_float;

/// The longest text parsed, in bytes.
const TEXT_BYTES_MAX: usize = 1 << 20;

/// Parses what messages call `what`; nothing may follow it.
pub fn parse(text: &str, what: &str) -> Result<Expr> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(Error::invalid(format!("the {what} has {} bytes; expected at most {TEXT_BYTES_MAX}", text.len())));
    }
    let context = |error: Error| error.context(format_args!("cannot parse {what} `{}`", clip(text)));
    parse_tokens(text).map_err(context)
}

fn parse_tokens(text: &str) -> Result<Expr> {
    let tokens = Tokenizer::new(&FilterDialect, text)
        .tokenize_with_location()
        .map_err(|error| Error::invalid(format!("{}{}", error.message, error.location)))?;
    check_tokens(&tokens)?;
    if tokens.iter().all(|token| matches!(token.token, Token::Whitespace(_) | Token::EOF)) {
        return Err(Error::invalid("it is empty; leave it out for all rows"));
    }
    let mut parser =
        Parser::new(&FilterDialect).with_recursion_limit(PARSER_DEPTH_MAX).with_tokens_with_locations(tokens);
    let parsed = parser.parse_expr().map_err(|error| match error {
        ParserError::TokenizerError(message) | ParserError::ParserError(message) => Error::invalid(message),
        ParserError::RecursionLimitExceeded => {
            Error::invalid(format!("it is nested too deeply; expected at most {DEPTH_MAX} levels"))
        }
    })?;
    let behind = parser.peek_token_ref();
    if behind.token != Token::EOF {
        // Convert first, so that the tree is consumed by the loop below and not by a deeply recursive drop.
        let (found, start) = (clip(&behind.token.to_string()), behind.span.start);
        convert(parsed, 0)?;
        let way = match found.to_ascii_lowercase().as_str() {
            "limit" => "; how many rows are read is an argument of its own: limit=5",
            "order" => "; filters have no order; SQL has",
            _ if text.trim_start().to_ascii_lowercase().starts_with("where ") => "; leave out the word `where`",
            _ => "",
        };
        return Err(Error::invalid(format!(
            "expected the end of the filter, `and` or `or`, found `{found}`{start}{way}"
        )));
    }
    convert(parsed, 0)
}

/// The class of a chain of binary operators that is kept flat.
#[derive(Clone, Copy, PartialEq)]
enum ChainOp {
    And,
    Or,
    Arithmetic(ArithmeticOp),
}

impl ChainOp {
    fn of(op: &BinaryOperator) -> Option<ChainOp> {
        Some(match op {
            BinaryOperator::And => ChainOp::And,
            BinaryOperator::Or => ChainOp::Or,
            BinaryOperator::Plus => ChainOp::Arithmetic(ArithmeticOp::Add),
            BinaryOperator::Minus => ChainOp::Arithmetic(ArithmeticOp::Subtract),
            BinaryOperator::Multiply => ChainOp::Arithmetic(ArithmeticOp::Multiply),
            BinaryOperator::Divide => ChainOp::Arithmetic(ArithmeticOp::Divide),
            BinaryOperator::Modulo => ChainOp::Arithmetic(ArithmeticOp::Remainder),
            _ => return None,
        })
    }

    fn joins(self, other: ChainOp) -> bool {
        match (self, other) {
            (ChainOp::Arithmetic(a), ChainOp::Arithmetic(b)) => a.is_sum() == b.is_sum(),
            (a, b) => a == b,
        }
    }
}

fn convert(mut sql: Sql, depth: usize) -> Result<Expr> {
    while let Sql::Nested(inner) = sql {
        sql = *inner;
    }
    if depth > DEPTH_MAX {
        return Err(Error::invalid(format!("it is nested too deeply; expected at most {DEPTH_MAX} levels")));
    }
    let part = |sql: Box<Sql>| convert(*sql, depth + 1).map(Box::new);
    Ok(match sql {
        Sql::Identifier(name) => Expr::Column(vec![name.value]),
        Sql::CompoundIdentifier(names) => Expr::Column(names.into_iter().map(|name| name.value).collect()),
        Sql::Value(value) => Expr::Literal(literal(value.value)?),
        Sql::TypedString(typed) if matches!(typed.data_type, DataType::Double(_)) => {
            Expr::Literal(double(typed.value.value)?)
        }
        Sql::TypedString(typed) => Expr::Literal(moment(&typed.data_type, typed.value.value)?),
        Sql::Interval(Interval {
            value,
            leading_field: None,
            leading_precision: None,
            last_field: None,
            fractional_seconds_precision: None,
        }) => Expr::Literal(interval(*value)?),
        Sql::Interval(_) => {
            return Err(Error::invalid("the units of an interval must be inside its string, as in `interval '90 s'`"));
        }
        Sql::UnaryOp { op: UnaryOperator::Not, expr } => Expr::Not(part(expr)?),
        // `+x` is `x`, but it counts as nesting.
        Sql::UnaryOp { op: UnaryOperator::Plus, expr } => return convert(*expr, depth + 1),
        Sql::UnaryOp { op: UnaryOperator::Minus, expr } => match convert(*expr, depth + 1)? {
            Expr::Literal(Literal::Number(number)) => Expr::Literal(Literal::Number(number.negated())),
            other => Expr::Negate(Box::new(other)),
        },
        Sql::BinaryOp { left, op, right } => match ChainOp::of(&op) {
            Some(class) => return chain(*left, class, *right, depth),
            None => Expr::Compare { op: compare_op(&op)?, left: part(left)?, right: part(right)? },
        },
        Sql::IsNull(expr) => Expr::IsNull { expr: part(expr)?, negated: false },
        Sql::IsNotNull(expr) => Expr::IsNull { expr: part(expr)?, negated: true },
        Sql::IsTrue(expr) => Expr::IsTruth { expr: part(expr)?, negated: false, truth: true },
        Sql::IsNotTrue(expr) => Expr::IsTruth { expr: part(expr)?, negated: true, truth: true },
        Sql::IsFalse(expr) => Expr::IsTruth { expr: part(expr)?, negated: false, truth: false },
        Sql::IsNotFalse(expr) => Expr::IsTruth { expr: part(expr)?, negated: true, truth: false },
        Sql::Between { expr, negated, low, high } => {
            Expr::Between { expr: part(expr)?, negated, low: part(low)?, high: part(high)? }
        }
        Sql::InList { expr, list, negated } if list.is_empty() => {
            part(expr)?;
            Expr::Literal(Literal::Bool(negated))
        }
        Sql::InList { expr, list, negated } => {
            let list = list
                .into_iter()
                .map(|item| as_literal(convert(item, depth + 1)?, "in (...)"))
                .collect::<Result<_>>()?;
            Expr::In { expr: part(expr)?, negated, list }
        }
        Sql::Like { negated, any: false, expr, pattern, escape_char } => {
            like(part(expr)?, negated, false, *part(pattern)?, escape_char)?
        }
        Sql::ILike { negated, any: false, expr, pattern, escape_char } => {
            like(part(expr)?, negated, true, *part(pattern)?, escape_char)?
        }
        Sql::Function(Function { name, args: FunctionArguments::List(list), .. }) => {
            let args = list.args.into_iter().map(|arg| match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(arg)) => convert(arg, depth + 1),
                other => Err(Error::invalid(format!("`{}` is not a value", clip(&other.to_string())))),
            });
            functions::call(&name.to_string(), args.collect::<Result<_>>()?)?
        }
        Sql::Cast { kind, expr, data_type, .. } => {
            let data_type = match &data_type {
                DataType::Custom(name, _) if let Some(ident) = name.0.first().and_then(|part| part.as_ident()) => {
                    parse_type(&ident.value)?
                }
                other => parse_type(&other.to_string())?,
            };
            Expr::Cast { expr: part(expr)?, data_type, lenient: kind == CastKind::TryCast }
        }
        other => return Err(Error::invalid(format!("`{}` is not part of the filter language", clip(&shown(&other))))),
    })
}

/// Flattens a left-deep chain of operators of one class, by a loop.
fn chain(left: Sql, class: ChainOp, right: Sql, depth: usize) -> Result<Expr> {
    let mut terms = vec![(class, right)];
    let mut first = left;
    loop {
        match first {
            Sql::BinaryOp { left, op, right } if ChainOp::of(&op).is_some_and(|op| op.joins(class)) => {
                terms.push((ChainOp::of(&op).expect("just matched"), *right));
                first = *left;
            }
            Sql::Nested(inner) => first = *inner,
            _ => break,
        }
    }
    let first = convert(first, depth + 1)?;
    let terms = terms.into_iter().rev();
    if !matches!(class, ChainOp::Arithmetic(_)) {
        // Removing `+(...)` can expose another chain of the class.
        let mut flat = match (first, class) {
            (Expr::And(inner), ChainOp::And) | (Expr::Or(inner), ChainOp::Or) => inner,
            (first, _) => vec![first],
        };
        for (_, term) in terms {
            match (convert(term, depth + 1)?, class) {
                (Expr::And(inner), ChainOp::And) | (Expr::Or(inner), ChainOp::Or) => flat.extend(inner),
                (term, _) => flat.push(term),
            }
        }
        return Ok(if class == ChainOp::And { Expr::And(flat) } else { Expr::Or(flat) });
    }
    let (first, mut rest) = match first {
        Expr::Chain { first, rest } if ChainOp::Arithmetic(rest[0].0).joins(class) => (first, rest),
        first => (Box::new(first), Vec::with_capacity(terms.len())),
    };
    for (op, term) in terms {
        let ChainOp::Arithmetic(op) = op else { unreachable!("classes do not mix") };
        rest.push((op, convert(term, depth + 1)?));
    }
    Ok(Expr::Chain { first, rest })
}

fn compare_op(op: &BinaryOperator) -> Result<CompareOp> {
    Ok(match op {
        BinaryOperator::Eq => CompareOp::Eq,
        BinaryOperator::NotEq => CompareOp::Ne,
        BinaryOperator::Lt => CompareOp::Lt,
        BinaryOperator::LtEq => CompareOp::Le,
        BinaryOperator::Gt => CompareOp::Gt,
        BinaryOperator::GtEq => CompareOp::Ge,
        other => return Err(Error::invalid(format!("operator `{other}` is not part of the filter language"))),
    })
}

fn literal(value: Value) -> Result<Literal> {
    Ok(match value {
        Value::Null => Literal::Null,
        Value::Boolean(value) => Literal::Bool(value),
        Value::SingleQuotedString(text) => Literal::Text(text),
        Value::Number(text, _) => Literal::Number(
            Number::parse(&text).ok_or_else(|| Error::invalid(format!("`{}` is not a number", clip(&text))))?,
        ),
        Value::HexStringLiteral(text) => Literal::Binary(bytes_of_hex(&text)?),
        other => {
            return Err(Error::invalid(format!(
                "`{}` is not a literal of the filter language",
                clip(&other.to_string())
            )));
        }
    })
}

fn bytes_of_hex(text: &str) -> Result<Vec<u8>> {
    let wrong = || Error::invalid(format!("x'{}': expected pairs of hexadecimal digits", clip(text)));
    let digit = |byte: &u8| (*byte as char).to_digit(16).map(|digit| digit as u8).ok_or_else(wrong);
    if !text.len().is_multiple_of(2) {
        return Err(wrong());
    }
    text.as_bytes().chunks(2).map(|pair| Ok(digit(&pair[0])? << 4 | digit(&pair[1])?)).collect()
}

/// A float that no number is.
fn double(value: Value) -> Result<Literal> {
    match value {
        Value::SingleQuotedString(text) if let Some(double) = special_float(&text) => {
            Ok(Literal::Double(double.to_string().to_ascii_lowercase()))
        }
        other => Err(Error::invalid(format!("`double {}`: expected 'nan', 'inf' or '-inf'", clip(&other.to_string())))),
    }
}

fn interval(value: Sql) -> Result<Literal> {
    match value {
        Sql::Value(ValueWithSpan { value: Value::SingleQuotedString(text), .. }) if span::parse(&text).is_some() => {
            Ok(Literal::Interval(text))
        }
        other => Err(Error::invalid(format!("`interval {}`: {}", clip(&other.to_string()), span::EXPECTED))),
    }
}

fn moment(kind: &DataType, value: Value) -> Result<Literal> {
    let Value::SingleQuotedString(text) = value else {
        return Err(Error::invalid(format!("expected a string after `{kind}`, found `{}`", clip(&value.to_string()))));
    };
    let (read, expected) = match kind {
        DataType::Date => (Moment::date(&text), "YYYY-MM-DD"),
        DataType::Time(None, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => {
            (Moment::time(&text), "HH:MM[:SS[.f]]")
        }
        DataType::Timestamp(None, zone) => {
            let mut read = Moment::timestamp(&text);
            match zone {
                TimezoneInfo::None => {}
                TimezoneInfo::WithoutTimeZone => read = read.filter(|moment| !moment.zoned),
                // Without a zone, the text is read as UTC.
                _ => read = read.map(|moment| Moment { zoned: true, ..moment }),
            }
            (read, "YYYY-MM-DD[ HH:MM[:SS[.f]][zone]]")
        }
        _ => return Err(Error::invalid(format!("`{kind} '{}'` is not a literal of the filter language", clip(&text)))),
    };
    read.map(Literal::Moment).ok_or_else(|| Error::invalid(format!("`{kind} '{}'`: expected {expected}", clip(&text))))
}

fn as_literal(expr: Expr, place: &str) -> Result<Literal> {
    match expr {
        Expr::Literal(literal) => Ok(literal),
        other => {
            let hint = match &other {
                Expr::Column(path) => format!("; {}", quotes(&path.join("."))),
                _ => String::new(),
            };
            let found = clip(&other.to_string());
            Err(Error::invalid(format!("expected literals in `{place}`, found `{found}`{hint}")))
        }
    }
}

fn like(expr: Box<Expr>, negated: bool, insensitive: bool, pattern: Expr, escape: Option<Box<Sql>>) -> Result<Expr> {
    let pattern = match as_literal(pattern, "like ...")? {
        pattern @ (Literal::Text(_) | Literal::Null) => pattern,
        other => return Err(Error::invalid(format!("expected a string after `like`, found `{other}`"))),
    };
    let escape = match escape {
        None => None,
        Some(escape) => match convert(*escape, DEPTH_MAX)? {
            Expr::Literal(Literal::Text(text)) if text.chars().count() == 1 => text.chars().next(),
            other => {
                return Err(Error::invalid(format!(
                    "expected one character after `escape`, found `{}`",
                    clip(&other.to_string())
                )));
            }
        },
    };
    if let Literal::Text(text) = &pattern {
        check_escapes(text, escape)?;
    }
    Ok(Expr::Like { expr, negated, insensitive, pattern, escape })
}

fn check_escapes(pattern: &str, escape: Option<char>) -> Result<()> {
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        if Some(c) == escape && chars.next().is_none() {
            return Err(Error::invalid(format!(
                "the like pattern '{}' ends with its escape character; write another character after it",
                clip(pattern)
            )));
        }
    }
    Ok(())
}

/// The name of an SQL construct outside the language: printing the whole tree could recurse deeply.
fn shown(sql: &Sql) -> String {
    match sql {
        Sql::InSubquery { .. } | Sql::Subquery(_) | Sql::Exists { .. } => "a subquery".to_owned(),
        Sql::Tuple(_) => "a list outside `in`".to_owned(),
        other => {
            let mut head = DebugName(String::new());
            // This ends with an error as soon as the name is complete.
            let _ = write!(head, "{other:?}");
            head.0
        }
    }
}

/// Takes the name of a construct from its debug output, and stops the output before it recurses.
struct DebugName(String);

impl fmt::Write for DebugName {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = text.find(|c: char| !c.is_ascii_alphanumeric());
        self.0.push_str(&text[..end.unwrap_or(text.len())]);
        if end.is_some() || self.0.len() > 64 { Err(fmt::Error) } else { Ok(()) }
    }
}
