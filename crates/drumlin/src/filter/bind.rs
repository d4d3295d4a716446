//! Type checking: turns syntax and a schema into a plan.
//!
//! Invariant: what binds can be evaluated; the only errors left for rows are numbers beyond 128 bits, and values that a function
//! or a cast does not take.

use std::cell::RefCell;
use std::collections::BTreeSet;

use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType, Schema};

use super::call::{self, Argument, FunctionCall, Operation};
use super::expression::ValueSource;
use super::kind::{DomainLiteral, Kind, compare_literals};
use super::plan::{ColumnRef, LikePattern, Predicate, ScalarExpression, Test};
use super::signature::{self, GivenValue, Signature, literal_type, signature};
use super::text::names;
use super::text::scalar::ScalarFunction;
use super::text::syntax::{CompareOp, Expr, Literal};
use crate::base::{Error, Result, TypeName};

/// Binds a predicate, with the calls that it takes.
pub fn bind(expr: &Expr, schema: &Schema) -> Result<(Predicate, Vec<FunctionCall>)> {
    let binder = Binder::new(schema);
    let bound = binder.predicate(expr)?;
    Ok((bound, binder.calls()))
}

/// Binds a value of type `wanted`, with the calls that it takes.
pub fn bind_value(expr: &Expr, schema: &Schema, wanted: &DataType) -> Result<(ValueSource, Vec<FunctionCall>)> {
    let binder = Binder::new(schema);
    let bound = binder.value(expr, wanted)?;
    Ok((bound, binder.calls()))
}

/// The type of the values of an expression.
pub fn data_type(expr: &Expr, schema: &Schema) -> Result<DataType> {
    let binder = Binder::new(schema);
    Ok(match expr {
        Expr::Literal(Literal::Bool(_)) => DataType::Boolean,
        Expr::Literal(_) => DataType::Float64,
        _ => binder.type_of(expr)?,
    })
}

/// The indexes of the columns that an expression refers to.
pub fn columns_of(expr: &Expr, schema: &Schema) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    expr.collect_columns(&mut found);
    found.iter().filter_map(|name| schema.index_of(names::meant(name, schema)).ok()).collect()
}

struct Binder<'a> {
    schema: &'a Schema,
    /// The calls so far, each behind those that it takes, with what they were bound from.
    calls: RefCell<Vec<(Expr, FunctionCall)>>,
}

/// A side of a comparison.
enum Operand<'a> {
    Literal(&'a Literal),
    Value(ScalarExpression),
    Truth(Predicate),
}

impl<'a> Binder<'a> {
    fn new(schema: &'a Schema) -> Self {
        Self { schema, calls: RefCell::default() }
    }

    fn calls(self) -> Vec<FunctionCall> {
        self.calls.into_inner().into_iter().map(|(_, call)| call).collect()
    }

    /// A value of type `wanted`.
    fn value(&self, expr: &Expr, wanted: &DataType) -> Result<ValueSource> {
        let mismatch = || {
            let (found, wanted) = (self.described(expr), TypeName(wanted));
            Err(Error::invalid(match expr {
                Expr::Literal(_) => format!("{found} is not a valid {wanted}"),
                _ => format!("{found} does not have the type {wanted}"),
            }))
        };
        let kind = Kind::of(wanted);
        Ok(match expr {
            Expr::Literal(Literal::Null) => ValueSource::Null,
            Expr::Literal(literal) => match (kind, literal) {
                (Some(Kind::Bool), Literal::Bool(value)) => ValueSource::Truth(Predicate::Constant(Some(*value))),
                (Some(Kind::Null | Kind::Bool), _) | (None, _) => return mismatch(),
                (Some(Kind::Float), Literal::Number(number)) => match number.nearest() {
                    nearest if nearest.is_finite() => ValueSource::Number(ScalarExpression::Float(nearest)),
                    _ => return mismatch(),
                },
                (Some(kind), literal) => match kind.place(literal) {
                    Ok(placed) => ValueSource::Literal(kind, placed),
                    Err(_) => return mismatch(),
                },
            },
            Expr::Column(_) | Expr::Call { .. } | Expr::Cast { .. } => {
                let column = self.found(expr).map_err(|e| match expr {
                    Expr::Column(path) => self.meant_as_text(e, path),
                    _ => e,
                })?;
                let same = self.type_of(expr)? == *wanted;
                let meets = column.kind.zip(kind).is_some_and(|(own, wanted)| own == Kind::Null || own.meets(wanted));
                match (same || meets, column.kind) {
                    (true, Some(Kind::Null)) => ValueSource::Null,
                    (true, _) => ValueSource::Column(column),
                    (false, _) => return mismatch(),
                }
            }
            Expr::Negate(_) | Expr::Chain { .. } => match kind {
                Some(Kind::Number { .. } | Kind::Float) => ValueSource::Number(self.arithmetic(expr)?),
                _ => return mismatch(),
            },
            _ => match kind {
                Some(Kind::Bool) => ValueSource::Truth(self.predicate(expr)?),
                _ => return mismatch(),
            },
        })
    }

    /// The type of the values of an expression.
    fn type_of(&self, expr: &Expr) -> Result<DataType> {
        Ok(match expr {
            Expr::Column(path) => {
                self.column(path)?;
                self.data_type(path).unwrap_or(DataType::Null)
            }
            Expr::Negate(_) | Expr::Chain { .. } => match self.arithmetic(expr)?.kind() {
                Some(Kind::Number { scale: 0 }) if !self.has_decimals(expr) => DataType::Int64,
                Some(Kind::Number { scale: scale @ 0..=38 }) => {
                    DataType::Decimal128(DECIMAL128_MAX_PRECISION, scale as i8)
                }
                _ => DataType::Float64,
            },
            Expr::Call { .. } | Expr::Cast { .. } => {
                let nth = self.call(expr)?.index - self.schema.fields().len();
                self.calls.borrow()[nth].1.data_type.clone()
            }
            Expr::Literal(literal) => literal_type(literal),
            _ => DataType::Boolean,
        })
    }

    /// The column that a call of a function becomes.
    fn call(&self, expr: &Expr) -> Result<ColumnRef> {
        if let Some((_, call)) = self.calls.borrow().iter().find(|(known, _)| known == expr) {
            return Ok(call.column.clone());
        }
        let (operation, args, data_type) = match expr {
            Expr::Cast { expr, data_type, lenient } => {
                let from = signature::plain(&self.type_of(expr)?);
                if !signature::can_cast(&from, data_type) {
                    let (found, to) = (self.described(expr), TypeName(data_type));
                    return Err(Error::invalid(format!("{found} cannot be cast from {} to {to}", TypeName(&from))));
                }
                let args = vec![Argument { source: self.value(expr, &from)?, data_type: from }];
                (Operation::Cast { lenient: *lenient }, args, data_type.clone())
            }
            Expr::Call { function, args } => self.function(*function, args)?,
            other => return Err(self.expected("a function", other)),
        };
        let needs = columns_of(expr, self.schema);
        let mut calls = self.calls.borrow_mut();
        // A name that no column has.
        let mut name = format!("\0{}", calls.len());
        while self.schema.index_of(&name).is_ok() {
            name.insert(0, '\0');
        }
        let index = self.schema.fields().len() + calls.len();
        let column = ColumnRef { index, path: vec![name], kind: Kind::of(&data_type) };
        let text = expr.to_string();
        calls.push((expr.clone(), FunctionCall { operation, args, data_type, text, column: column.clone(), needs }));
        Ok(column)
    }

    fn function(&self, function: ScalarFunction, args: &[Expr]) -> Result<(Operation, Vec<Argument>, DataType)> {
        let given = args
            .iter()
            .map(|arg| {
                let whole = match arg {
                    Expr::Literal(Literal::Number(number)) => number.unscaled().filter(|(_, scale)| *scale == 0),
                    _ => None,
                };
                let whole = whole.and_then(|(value, _)| i64::try_from(value).ok());
                Ok(GivenValue { data_type: self.type_of(arg)?, is_literal: matches!(arg, Expr::Literal(_)), whole })
            })
            .collect::<Result<Vec<_>>>()?;
        let Signature { args: types, result } = signature(function, &given).map_err(|(at, what)| {
            Error::invalid(format!("{}(...) takes {what}, not {}", function.name(), self.described(&args[at])))
        })?;
        let mut bound = Vec::new();
        for (arg, data_type) in args.iter().zip(types) {
            let source = match (function, self.type_of(arg)?) {
                (ScalarFunction::Concat, own) if Kind::of(&own) != Some(Kind::Text) => {
                    let text = Expr::Cast { expr: Box::new(arg.clone()), data_type: data_type.clone(), lenient: false };
                    self.value(&text, &data_type)?
                }
                _ => self.value(arg, &data_type)?,
            };
            bound.push(Argument { source, data_type });
        }
        if let (ScalarFunction::NullIf, [value, other]) = (function, args) {
            let source = ValueSource::Truth(self.compare(CompareOp::Eq, value, other)?);
            bound.push(Argument { source, data_type: DataType::Boolean });
        }
        let unit = match args.first() {
            Some(Expr::Literal(Literal::Text(unit))) => Some(unit.as_str()),
            _ => None,
        };
        let of = bound.last().map_or(DataType::Null, |arg| arg.data_type.clone());
        Ok((call::operation(function, unit, &of)?, bound, result))
    }

    /// Whether a calculation has a column of decimals, or a literal with a point.
    fn has_decimals(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Literal(Literal::Number(number)) => number.is_fractional(),
            Expr::Column(path) => self.data_type(path).is_some_and(|data_type| data_type.is_decimal()),
            Expr::Negate(of) => self.has_decimals(of),
            Expr::Call { .. } | Expr::Cast { .. } => self.type_of(expr).is_ok_and(|data_type| data_type.is_decimal()),
            Expr::Chain { first, rest } => {
                self.has_decimals(first) || rest.iter().any(|(_, term)| self.has_decimals(term))
            }
            _ => false,
        }
    }

    fn predicate(&self, expr: &Expr) -> Result<Predicate> {
        match expr {
            Expr::Literal(Literal::Bool(value)) => Ok(Predicate::Constant(Some(*value))),
            Expr::Literal(Literal::Null) => Ok(Predicate::Constant(None)),
            Expr::Column(path) => {
                let column = self.column(path)?;
                match column.kind {
                    Some(Kind::Bool) => Ok(Predicate::Flag(column)),
                    Some(Kind::Null) => Ok(Predicate::Constant(None)),
                    _ => Err(self.expected("a predicate", expr)),
                }
            }
            Expr::Call { .. } | Expr::Cast { .. } => match self.call(expr)? {
                column if column.kind == Some(Kind::Bool) => Ok(Predicate::Flag(column)),
                _ => Err(self.expected("a predicate", expr)),
            },
            Expr::Literal(_) | Expr::Negate(_) | Expr::Chain { .. } => Err(self.expected("a predicate", expr)),
            Expr::Not(expr) => Ok(Predicate::Not(Box::new(self.predicate(expr)?))),
            Expr::And(terms) => {
                Ok(Predicate::And(terms.iter().map(|term| self.predicate(term)).collect::<Result<_>>()?))
            }
            Expr::Or(terms) => Ok(Predicate::Or(terms.iter().map(|term| self.predicate(term)).collect::<Result<_>>()?)),
            Expr::Compare { op, left, right } => self.compare(*op, left, right),
            Expr::Between { expr, negated, low, high } => {
                let both = Predicate::And(vec![
                    self.compare(CompareOp::Ge, expr, low)?,
                    self.compare(CompareOp::Le, expr, high)?,
                ]);
                Ok(negate(both, *negated))
            }
            Expr::In { expr, negated, list } => Ok(negate(self.among(expr, list)?, *negated)),
            Expr::Like { expr, negated, insensitive, pattern, escape } => {
                Ok(negate(self.like(expr, pattern, *escape, *insensitive)?, *negated))
            }
            Expr::IsNull { expr, negated } => {
                let node = match self.operand(expr)? {
                    Operand::Literal(literal) => Predicate::Constant(Some(*literal == Literal::Null)),
                    Operand::Value(value) => Predicate::IsNull(value),
                    Operand::Truth(Predicate::Flag(column)) => Predicate::IsNull(ScalarExpression::Column(column)),
                    Operand::Truth(node) => Predicate::IsTruth(Box::new(node), None),
                };
                Ok(negate(node, *negated))
            }
            Expr::IsTruth { expr, negated, truth } => {
                Ok(negate(Predicate::IsTruth(Box::new(self.predicate(expr)?), Some(*truth)), *negated))
            }
        }
    }

    fn operand<'e>(&self, expr: &'e Expr) -> Result<Operand<'e>> {
        Ok(match expr {
            Expr::Literal(literal) => Operand::Literal(literal),
            Expr::Column(_) | Expr::Call { .. } | Expr::Cast { .. } => match self.found(expr)? {
                column if column.kind == Some(Kind::Bool) => Operand::Truth(Predicate::Flag(column)),
                column => Operand::Value(ScalarExpression::Column(column)),
            },
            Expr::Negate(_) | Expr::Chain { .. } => Operand::Value(self.arithmetic(expr)?),
            _ => Operand::Truth(self.predicate(expr)?),
        })
    }

    /// A side of a comparison with `other`. A name where a text may be is probably meant as a text if there is no
    /// column of that name.
    fn side<'e>(&self, expr: &'e Expr, other: &Expr) -> Result<Operand<'e>> {
        self.operand(expr).map_err(|e| match expr {
            Expr::Column(path) if !matches!(other, Expr::Literal(_)) => self.meant_as_text(e, path),
            _ => e,
        })
    }

    /// The error for a name, with a hint if there is no such column.
    fn meant_as_text(&self, error: Error, path: &[String]) -> Error {
        match self.data_type(path) {
            None => Error::invalid(format!("{}; {}", error.message(), names::quotes(&path.join(".")))),
            Some(_) => error,
        }
    }

    fn arithmetic(&self, expr: &Expr) -> Result<ScalarExpression> {
        match expr {
            Expr::Literal(Literal::Number(number)) => match number.unscaled() {
                Some((value, scale)) => Ok(ScalarExpression::Number { value, scale }),
                None if number.is_fractional() && number.nearest().is_finite() => {
                    Ok(ScalarExpression::Float(number.nearest()))
                }
                None => Err(Error::invalid(format!(
                    "{} is out of range for arithmetic; at most 38 digits are possible",
                    names::clip(&number.to_string())
                ))),
            },
            Expr::Column(_) | Expr::Call { .. } | Expr::Cast { .. } => {
                let column = self.found(expr)?;
                match column.kind {
                    Some(Kind::Number { .. } | Kind::Float) => Ok(ScalarExpression::Column(column)),
                    _ => Err(self.expected("a number for arithmetic", expr)),
                }
            }
            Expr::Negate(expr) => Ok(ScalarExpression::Negate(Box::new(self.arithmetic(expr)?))),
            Expr::Chain { first, rest } => {
                let first = Box::new(self.arithmetic(first)?);
                let rest = rest.iter().map(|(op, term)| Ok((*op, self.arithmetic(term)?))).collect::<Result<_>>()?;
                Ok(ScalarExpression::Chain { first, rest })
            }
            _ => Err(self.expected("a number for arithmetic", expr)),
        }
    }

    fn compare(&self, op: CompareOp, left: &Expr, right: &Expr) -> Result<Predicate> {
        let mismatch =
            || Error::invalid(format!("{} and {} cannot be compared", self.described(left), self.described(right)));
        let sides = (self.side(left, right)?, self.side(right, left)?);
        match sides {
            (Operand::Literal(Literal::Null), _) | (_, Operand::Literal(Literal::Null)) => {
                Ok(Predicate::Constant(None))
            }
            (Operand::Literal(a), Operand::Literal(b)) => {
                compare_literals(a, b).map(|order| Predicate::Constant(Some(op.holds(order)))).map_err(Error::invalid)
            }
            (Operand::Value(value), Operand::Literal(literal)) => self.compare_literal(op, left, value, literal),
            (Operand::Literal(literal), Operand::Value(value)) => {
                self.compare_literal(op.flipped(), right, value, literal)
            }
            (Operand::Truth(left), Operand::Literal(Literal::Bool(right))) => Ok(Predicate::CompareTruth {
                op,
                left: Box::new(left),
                right: Box::new(Predicate::Constant(Some(*right))),
            }),
            (Operand::Literal(Literal::Bool(left)), Operand::Truth(right)) => Ok(Predicate::CompareTruth {
                op,
                left: Box::new(Predicate::Constant(Some(*left))),
                right: Box::new(right),
            }),
            (Operand::Truth(left), Operand::Truth(right)) => {
                Ok(Predicate::CompareTruth { op, left: Box::new(left), right: Box::new(right) })
            }
            (Operand::Value(a), Operand::Value(b)) => match (self.kind(left, &a)?, a, self.kind(right, &b)?, b) {
                (Kind::Null, ..) | (_, _, Kind::Null, _) => Ok(Predicate::Constant(None)),
                (a, _, b, _) if !a.meets(b) => Err(mismatch()),
                (Kind::Text | Kind::Binary, ScalarExpression::Column(left), _, ScalarExpression::Column(right)) => {
                    Ok(Predicate::CompareBytes { op, left, right })
                }
                (_, left, _, right) => Ok(Predicate::CompareValues { op, left, right }),
            },
            // A column of only nulls counts as a value, and compares with anything.
            (Operand::Value(value), _) | (_, Operand::Value(value)) if value.kind() == Some(Kind::Null) => {
                Ok(Predicate::Constant(None))
            }
            _ => Err(mismatch()),
        }
    }

    fn compare_literal(
        &self,
        op: CompareOp,
        expr: &Expr,
        value: ScalarExpression,
        literal: &Literal,
    ) -> Result<Predicate> {
        match self.kind(expr, &value)? {
            Kind::Null => Ok(Predicate::Constant(None)),
            kind => Ok(Predicate::Test(value, Test::compare(op, self.place(expr, kind, literal)?))),
        }
    }

    fn among(&self, expr: &Expr, list: &[Literal]) -> Result<Predicate> {
        let value = match self.operand(expr)? {
            Operand::Value(value) => value,
            _ => {
                let equals = |literal: &Literal| self.compare(CompareOp::Eq, expr, &Expr::Literal(literal.clone()));
                return Ok(Predicate::Or(list.iter().map(equals).collect::<Result<_>>()?));
            }
        };
        let kind = self.kind(expr, &value)?;
        if kind == Kind::Null {
            return Ok(Predicate::Constant(None));
        }
        let literals = list.iter().filter(|literal| **literal != Literal::Null);
        let placed = literals.map(|literal| self.place(expr, kind, literal)).collect::<Result<Vec<_>>>()?;
        let has_null = placed.len() < list.len();
        let test = Predicate::Test(value, Test::among(placed));
        Ok(if has_null { Predicate::Or(vec![test, Predicate::Constant(None)]) } else { test })
    }

    fn like(&self, expr: &Expr, pattern: &Literal, escape: Option<char>, insensitive: bool) -> Result<Predicate> {
        let Operand::Value(value) = self.operand(expr)? else {
            return Err(self.expected("a string column before `like`", expr));
        };
        match (self.kind(expr, &value)?, pattern) {
            (Kind::Null, _) | (Kind::Text, Literal::Null) => Ok(Predicate::Constant(None)),
            (Kind::Text, Literal::Text(pattern)) => Ok(Predicate::Test(
                value,
                match LikePattern::new(pattern, escape, insensitive) {
                    (Some(pattern), _) => Test::Like(pattern),
                    (None, text) => Test::Bytes(CompareOp::Eq, text.into_bytes()),
                },
            )),
            _ => Err(self.expected("a string column before `like`", expr)),
        }
    }

    fn place(&self, expr: &Expr, kind: Kind, literal: &Literal) -> Result<DomainLiteral> {
        kind.place(literal).map_err(|problem| Error::invalid(format!("{}: {problem}", self.described(expr))))
    }

    fn kind(&self, expr: &Expr, value: &ScalarExpression) -> Result<Kind> {
        value
            .kind()
            .ok_or_else(|| Error::invalid(format!("{}: values of this type cannot be compared", self.described(expr))))
    }

    /// A column, or what a call becomes.
    fn found(&self, expr: &Expr) -> Result<ColumnRef> {
        match expr {
            Expr::Column(path) => self.column(path),
            call => self.call(call),
        }
    }

    fn column(&self, path: &[String]) -> Result<ColumnRef> {
        let (root, below) = path.split_first().expect("a path has a name");
        let root = &names::meant(root, self.schema).to_owned();
        let index = self.schema.index_of(root).map_err(|_| names::unknown(root, "the table", self.schema.fields()))?;
        let mut data_type = self.schema.field(index).data_type();
        let mut parent = root;
        for name in below {
            let DataType::Struct(fields) = data_type else {
                return Err(Error::invalid(format!(
                    "{} has type {}, so it has no field {}",
                    names::written(parent),
                    TypeName(data_type),
                    names::written(name)
                )));
            };
            let (_, field) = fields.find(name).ok_or_else(|| names::unknown(name, &names::written(parent), fields))?;
            (data_type, parent) = (field.data_type(), name);
        }
        let path = std::iter::once(root).chain(below).cloned().collect();
        Ok(ColumnRef { index, path, kind: Kind::of(data_type) })
    }

    /// An expression in a message: a column with its type.
    fn described(&self, expr: &Expr) -> String {
        let text = names::clip(&expr.to_string());
        match expr {
            Expr::Column(path) => match self.data_type(path) {
                Some(data_type) => format!("{text} ({})", TypeName(&data_type)),
                None => text,
            },
            Expr::Call { .. } | Expr::Cast { .. } => match self.type_of(expr) {
                Ok(data_type) => format!("{text} ({})", TypeName(&data_type)),
                Err(_) => text,
            },
            _ => text,
        }
    }

    fn data_type(&self, path: &[String]) -> Option<DataType> {
        let root = names::meant(path.first()?, self.schema);
        let mut data_type = self.schema.field_with_name(root).ok()?.data_type();
        for name in &path[1..] {
            let DataType::Struct(fields) = data_type else { return None };
            data_type = fields.find(name)?.1.data_type();
        }
        Some(data_type.clone())
    }

    fn expected(&self, what: &str, found: &Expr) -> Error {
        Error::invalid(format!("expected {what}, found {}", self.described(found)))
    }
}

fn negate(node: Predicate, negated: bool) -> Predicate {
    if negated { Predicate::Not(Box::new(node)) } else { node }
}
