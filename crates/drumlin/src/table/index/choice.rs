//! How a filter may be answered by indexes: which of them take which of its terms.
//!
//! A filter is a conjunction of terms. An index takes a term if all columns of it are values of the index; then the rows for which the term
//! is true are among those that the index gives. A term that is a disjunction is taken where each of its alternatives is. A term with `not`
//! is one like others: it is evaluated on the values, with SQL's three truth values. An index with a condition takes terms only of filters
//! that have each term of the condition among their own, word for word.

use arrow::datatypes::Schema;

use super::definition::{NamedIndex, value_name};
use super::run::TableIndex;
use crate::base::Result;
use crate::base::planted::{Bug, planted};
use crate::filter::{Expression, Filter};
use crate::table::StoredSchema;

/// A way to answer a predicate.
pub(in crate::table) enum IndexAccess<'a> {
    /// By an index, whose entries this is evaluated on.
    Index(IndexTerm<'a>),
    /// By several: of alternatives, each by its own way.
    Any(Vec<IndexAccess<'a>>),
}

/// A predicate on the entries of an index.
pub(in crate::table) struct IndexTerm<'a> {
    pub index: &'a TableIndex,
    pub named: NamedIndex,
    /// In the names of the columns of entries.
    pub filter: Filter,
}

/// The ways to answer one or more terms of `filter`, in the columns of `schema`, of a version whose schema is `seen`.
pub(in crate::table) fn accesses<'a>(
    indexes: &'a [TableIndex],
    seen: &StoredSchema,
    schema: &Schema,
    filter: &Filter,
) -> Result<Vec<IndexAccess<'a>>> {
    let terms: Vec<Filter> = filter.terms().iter().map(|term| term.as_meant(schema)).collect();
    let mut usable = Vec::new();
    for index in indexes {
        let Some(named) = index.definition.named(seen)? else { continue };
        let holds = |condition: &Filter| condition.terms().iter().all(|term| terms.contains(term));
        if named.condition.as_ref().is_none_or(holds) || planted(Bug::IgnoreIndexCondition) {
            usable.push((index, named));
        }
    }
    let mut found: Vec<IndexAccess<'a>> =
        usable.iter().filter_map(|of| by_index(of, &terms)).map(IndexAccess::Index).collect();
    found.extend(terms.iter().filter_map(|term| by_alternatives(&usable, term)));
    Ok(found)
}

type UsableIndex<'a> = (&'a TableIndex, NamedIndex);

/// By one index, as many of the terms as it takes.
fn by_index<'a>((index, named): &UsableIndex<'a>, terms: &[Filter]) -> Option<IndexTerm<'a>> {
    let taken = terms.iter().filter(|term| {
        let rest = term.columns_beside(&named.values);
        // One without columns says nothing of rows.
        rest.is_empty() && !term.columns().is_empty()
    });
    let columns: Vec<(Expression, String)> =
        named.values.iter().enumerate().map(|(at, value)| (value.clone(), value_name(at))).collect();
    let filter = Filter::all_of(taken.map(|term| term.with_columns_for(&columns)))?;
    Some(IndexTerm { index, named: named.clone(), filter })
}

/// A disjunction, of which each alternative is taken.
fn by_alternatives<'a>(usable: &[UsableIndex<'a>], term: &Filter) -> Option<IndexAccess<'a>> {
    let mut alternatives = term.alternatives();
    if alternatives.len() < 2 {
        return None;
    }
    if planted(Bug::OneAlternative) {
        alternatives.truncate(1);
    }
    let way = |alternative: &Filter| {
        let terms = alternative.terms();
        let by_one = usable.iter().find_map(|of| by_index(of, &terms)).map(IndexAccess::Index);
        by_one.or_else(|| terms.iter().find_map(|term| by_alternatives(usable, term)))
    };
    alternatives.iter().map(way).collect::<Option<_>>().map(IndexAccess::Any)
}
