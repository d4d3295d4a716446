//! Names of columns: which column a name means; in messages, which words need quotes, and which column was probably
//! meant.

use arrow::datatypes::{Fields, Schema};

use crate::base::{Error, nearest};

/// Words that are not read as a bare column name.
const RESERVED: [&str; 18] = [
    "all", "and", "any", "between", "case", "cast", "escape", "exists", "false", "ilike", "in", "is", "like", "not",
    "null", "or", "some", "true",
];

/// The maximum number of columns named in a message.
const LISTED_MAX: usize = 20;

/// The maximum number of characters of a filter shown in a message.
const SHOWN_CHARS_MAX: usize = 120;

/// The name that pandas gives an unnamed index, and that of its column, as in pyarrow.
const INDEX: &str = "index";
const INDEX_COLUMN: &str = "__index_level_0__";

/// The name of the column that `name` means in `schema`: `index` means the column of an unnamed pandas index, unless a
/// column has that name.
pub fn meant<'a>(name: &'a str, schema: &Schema) -> &'a str {
    let is_index = name == INDEX && schema.index_of(INDEX).is_err() && schema.index_of(INDEX_COLUMN).is_ok();
    if is_index { INDEX_COLUMN } else { name }
}

/// The position of the column that `name` means.
///
/// # Errors
/// `InvalidArgument`, listing the existing columns.
pub fn find(schema: &Schema, name: &str) -> crate::base::Result<usize> {
    schema.index_of(meant(name, schema)).map_err(|_| {
        let names: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
        let near = nearest(name, names.iter().copied());
        let hint = near.map(|near| format!("; did you mean '{near}'?")).unwrap_or_default();
        Error::invalid(format!("column '{name}' does not exist{hint}; the columns are '{}'", names.join("', '")))
    })
}

/// A name as it is written in a filter.
pub fn written(name: &str) -> String {
    let plain =
        name.chars().enumerate().all(|(at, c)| c == '_' || c.is_ascii_alphabetic() || (at > 0 && c.is_ascii_digit()));
    if plain && !is_reserved(name) && !name.is_empty() {
        name.to_owned()
    } else {
        format!("\"{}\"", name.replace('"', "\"\""))
    }
}

pub fn is_reserved(word: &str) -> bool {
    RESERVED.iter().any(|reserved| word.eq_ignore_ascii_case(reserved))
}

/// A hint how to write `text` if it was meant as a text.
pub fn quotes(text: &str) -> String {
    format!("a string needs single quotes: '{}'", clip(&text.replace('\'', "''")))
}

/// The beginning of a long text.
pub fn clip(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// The error for a name that is not among `fields`; `within` names their parent.
pub fn unknown(name: &str, within: &str, fields: &Fields) -> Error {
    let close = nearest(name, fields.iter().map(|field| field.name().as_str()));
    let hint = close.map(|close| format!("; did you mean {}?", written(close))).unwrap_or_default();
    let mut listed = fields.iter().take(LISTED_MAX).map(|field| written(field.name())).collect::<Vec<_>>().join(", ");
    if fields.len() > LISTED_MAX {
        listed += &format!(" and {} more", fields.len() - LISTED_MAX);
    }
    Error::invalid(format!("{within} has no column {}{hint} (columns: {listed})", clip(&written(name))))
}
