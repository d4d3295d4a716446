//! The clauses of merges, and what updates set, as Python gives them: as texts.

use drumlin::{Error, Expression, Filter, Result, WhenMatched, WhenNotMatched};

/// A condition, what follows from it, and the columns that are set.
pub type Clause = (Option<String>, String, Vec<(String, String)>);

/// Columns and expressions.
pub fn assignments(set: Vec<(String, String)>) -> Result<Vec<(String, Expression)>> {
    set.into_iter().map(|(name, text)| Ok((name, Expression::parse(&text)?))).collect()
}

/// What becomes of rows that a row of the frame matches, or that none matches.
pub fn when_matched((condition, action, set): Clause) -> Result<(Option<Filter>, WhenMatched)> {
    let action = match action.as_str() {
        "update" => WhenMatched::Update(assignments(set)?),
        "update_all" => WhenMatched::UpdateAll,
        "delete" => WhenMatched::Delete,
        other => {
            return Err(Error::invalid(format!(
                "'{other}' is not an action of a merge; expected 'update', 'update_all' or 'delete'"
            )));
        }
    };
    Ok((condition.as_deref().map(Filter::parse).transpose()?, action))
}

/// What becomes of rows of the frame that match none.
pub fn when_not_matched((condition, action, set): Clause) -> Result<(Option<Filter>, WhenNotMatched)> {
    let action = match action.as_str() {
        "insert" => WhenNotMatched::Insert(assignments(set)?),
        "insert_all" => WhenNotMatched::InsertAll,
        other => {
            return Err(Error::invalid(format!(
                "'{other}' is not an action of a merge; expected 'insert' or 'insert_all'"
            )));
        }
    };
    Ok((condition.as_deref().map(Filter::parse).transpose()?, action))
}
