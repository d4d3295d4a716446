//! Calls of functions by their names: how many values they take, and those that are written in other words.

use super::names::{clip, quotes};
use super::scalar::{ARGUMENTS_MAX, FUNCTIONS, ScalarFunction};
use super::syntax::{Expr, Literal};
use crate::base::{Error, Result, nearest};

/// Names that are written in other words, with the number of values.
const IN_OTHER_WORDS: [(&str, usize); 8] = [
    ("ceiling", 1),
    ("ifnull", 2),
    ("date", 1),
    ("date_part", 2),
    ("datetrunc", 2),
    ("starts_with", 2),
    ("ends_with", 2),
    ("contains", 2),
];

/// Whether a function has this name, upper or lower case.
pub fn is_function(name: &str) -> bool {
    names().any(|known| known.eq_ignore_ascii_case(name))
}

fn names() -> impl Iterator<Item = &'static str> {
    let casts = ["cast", "try_cast", "extract"].into_iter();
    FUNCTIONS.iter().map(|(name, ..)| *name).chain(IN_OTHER_WORDS.iter().map(|(name, _)| *name)).chain(casts)
}

/// The message for a function that the language does not have.
pub fn unknown(name: &str) -> String {
    let near = nearest(name, names()).map(|near| format!("; did you mean {near}?")).unwrap_or_default();
    let way = match name {
        "count" | "sum" | "avg" | "mean" | "min" | "max" | "first" | "last" | "median" | "stddev" => {
            "aggregates of rows are made with group_by(...).agg(...)"
        }
        "mod" | "pow" | "power" | "sqrt" | "exp" | "ln" | "log" | "isnan" | "is_nan" => {
            "calculations are + - * / and %, and x = 'nan' finds NaN"
        }
        "left" | "substr" | "substring" | "regexp_matches" | "regexp_like" | "regexp" | "rlike" => {
            "texts are compared by like 'A%', starts_with(s, 'A'), ends_with and contains"
        }
        "now" | "today" | "current_timestamp" | "getdate" => {
            "a time is given: ts > timestamp '2026-01-31 16:00:00', or ?"
        }
        "if" | "iif" | "ifnull" | "nvl" | "greatest" | "least" => {
            "conditions are joined by and, or, not; coalesce(x, 0) stands for nulls"
        }
        _ => "",
    };
    let near = if way.is_empty() { near } else { format!("; {way}") };
    let mut known: Vec<&str> = names().collect();
    known.sort_unstable();
    format!("there is no such function in filters{near} (functions: {})", known.join(", "))
}

/// The call of a function by its name.
///
/// # Errors
/// `InvalidArgument` for a number of values that it does not take, and for what is no part of a time.
pub fn call(name: &str, mut args: Vec<Expr>) -> Result<Expr> {
    let name = name.to_ascii_lowercase();
    let taken = |least: usize, most: usize| {
        if (least..=most).contains(&args.len()) {
            return Ok(());
        }
        let wanted = match (least, most) {
            (1, 1) => "1 value".to_owned(),
            (_, ARGUMENTS_MAX) => format!("{least} to {ARGUMENTS_MAX} values"),
            _ if least == most => format!("{least} values"),
            _ => format!("{least} or {most} values"),
        };
        Err(Error::invalid(format!("{name}(...) takes {wanted}, not {}", args.len())))
    };
    if let Some((_, function, least, most)) = FUNCTIONS.iter().find(|(known, ..)| *known == name) {
        taken(*least, *most)?;
        if *function == ScalarFunction::DateTrunc {
            args[0] = Expr::Literal(Literal::Text(unit(&args[0], "date_trunc")?));
        }
        return Ok(Expr::Call { function: *function, args });
    }
    let Some((_, count)) = IN_OTHER_WORDS.iter().find(|(known, _)| *known == name) else {
        return Err(Error::invalid(format!("`{name}`: {}", unknown(&name))));
    };
    taken(*count, *count)?;
    match name.as_str() {
        "ceiling" => call("ceil", args),
        "ifnull" => call("coalesce", args),
        "datetrunc" => call("date_trunc", args),
        "date" => Ok(Expr::Cast {
            expr: Box::new(args.swap_remove(0)),
            data_type: arrow::datatypes::DataType::Date32,
            lenient: false,
        }),
        "date_part" => {
            let part = match unit(&args[0], "date_part")?.as_str() {
                "dow" => "dayofweek".to_owned(),
                "doy" => "dayofyear".to_owned(),
                part => part.to_owned(),
            };
            args.remove(0);
            let parts = FUNCTIONS
                .iter()
                .filter(|(_, function, ..)| matches!(function, ScalarFunction::Part(_)))
                .map(|(name, ..)| *name);
            match FUNCTIONS.iter().find(|(known, ..)| *known == part) {
                Some((_, function @ ScalarFunction::Part(_), ..)) => Ok(Expr::Call { function: *function, args }),
                _ => Err(Error::invalid(format!(
                    "'{}' is no part of a time; expected {}",
                    clip(&part),
                    parts.collect::<Vec<_>>().join(", ")
                ))),
            }
        }
        found => {
            let text = match args.pop() {
                Some(Expr::Literal(Literal::Text(text))) => text,
                Some(Expr::Literal(Literal::Null)) => {
                    let (expr, pattern) = (Box::new(args.swap_remove(0)), Literal::Null);
                    return Ok(Expr::Like { expr, negated: false, insensitive: false, pattern, escape: None });
                }
                other => {
                    let hint = match &other {
                        Some(Expr::Column(path)) => format!("; {}", quotes(&path.join("."))),
                        _ => String::new(),
                    };
                    let shown = other.map(|other| other.to_string()).unwrap_or_default();
                    return Err(Error::invalid(format!(
                        "{found}(...) takes a string as its second value, not `{}`{hint}",
                        clip(&shown)
                    )));
                }
            };
            Ok(like(args.swap_remove(0), &text, found != "starts_with", found != "ends_with"))
        }
    }
}

/// The word for a length of time that is the first value of a function.
fn unit(arg: &Expr, function: &str) -> Result<String> {
    match arg {
        Expr::Literal(Literal::Text(text)) => Ok(text.trim().to_ascii_lowercase()),
        // As in `extract(year from x)`.
        Expr::Column(path) if path.len() == 1 => Ok(path[0].to_ascii_lowercase()),
        other => Err(Error::invalid(format!(
            "{function}(...) takes a word such as 'month' as its first value, not `{}`",
            clip(&other.to_string())
        ))),
    }
}

/// A pattern that is a text with anything before or after it.
fn like(expr: Expr, text: &str, before: bool, after: bool) -> Expr {
    let special = text.contains(['%', '_', '\\']);
    let mut pattern = String::from(if before { "%" } else { "" });
    for c in text.chars() {
        if special && matches!(c, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern.push_str(if after { "%" } else { "" });
    Expr::Like {
        expr: Box::new(expr),
        negated: false,
        insensitive: false,
        pattern: Literal::Text(pattern),
        escape: special.then_some('\\'),
    }
}
