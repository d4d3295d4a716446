//! Statements of SQL that change a store, as JSON: what is to be done, with queries and expressions as text.

use drumlin::{Error, Result};
use pyo3::prelude::*;
use serde_json::{Value, json};
use sqlparser::ast::{
    AlterColumnOperation, AlterTableOperation, Assignment, AssignmentTarget, BinaryOperator, ColumnDef, ColumnOption,
    ConflictTarget, CopySource, CopyTarget, CreateIndex, CreateTable, Delete, Expr, FromTable, Ident, IndexColumn,
    Insert, Merge, MergeAction, MergeClause, MergeClauseKind, MergeInsertExpr, MergeInsertKind, MergeUpdateExpr,
    MergeUpdateKind, ObjectName, ObjectType, OnConflictAction, OnInsert, OrderBySort, RenameTableNameKind, SelectItem,
    SequenceOptions, SqliteOnConflict, Statement, TableAlias, TableConstraint, TableFactor, TableObject,
    TableWithJoins, Update,
};
use sqlparser::dialect::DuckDbDialect;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;

use crate::errors::raise;

/// How deep a statement may be nested.
const DEPTH_MAX: usize = 50;

/// What a statement is to do, as JSON.
#[pyfunction]
pub fn parse_statement(text: &str) -> PyResult<String> {
    parse(text).map(|told| told.to_string()).map_err(raise)
}

fn parse(text: &str) -> Result<Value> {
    let parsed = Parser::new(&DuckDbDialect {})
        .with_recursion_limit(DEPTH_MAX)
        .try_with_sql(text)
        .and_then(|mut parser| {
            let statement = parser.parse_statement()?;
            while parser.consume_token(&Token::SemiColon) {}
            // Without this, what follows the statement would be ignored.
            parser.expect_token(&Token::EOF)?;
            Ok(statement)
        })
        .map_err(|e| Error::invalid(format!("cannot parse the statement: {e}")))?;
    match parsed {
        Statement::Insert(insert) => self::insert(&insert),
        Statement::Update(update) => self::update(&update),
        Statement::Delete(delete) => self::delete(&delete),
        Statement::Merge(merge) => self::merge(&merge),
        Statement::CreateTable(create) => self::create(&create),
        Statement::CreateIndex(create) => self::create_index(&create),
        Statement::Drop { object_type: ObjectType::Index, if_exists, names, table, .. } => {
            let table = table
                .as_ref()
                .ok_or_else(|| Error::invalid("an index belongs to a table; expected DROP INDEX name ON table"))?;
            let names = names.iter().map(column).collect::<Result<Vec<_>>>()?;
            Ok(json!({ "do": "drop_index", "table": path(table)?, "names": names, "if_exists": if_exists }))
        }
        Statement::AlterTable(alter) => {
            let changes = alter.operations.iter().map(self::alter).collect::<Result<Vec<_>>>()?;
            Ok(json!({ "do": "alter", "table": path(&alter.name)?, "if_exists": alter.if_exists, "changes": changes }))
        }
        Statement::Drop { object_type: ObjectType::Table, if_exists, names, .. } => {
            let paths = names.iter().map(path).collect::<Result<Vec<_>>>()?;
            Ok(json!({ "do": "drop", "tables": paths, "if_exists": if_exists }))
        }
        Statement::Truncate(truncate) => {
            let paths = truncate.table_names.iter().map(|table| path(&table.name)).collect::<Result<Vec<_>>>()?;
            Ok(json!({ "do": "truncate", "tables": paths }))
        }
        Statement::Copy { source, to, target: CopyTarget::File { filename }, .. } => copy(&source, to, &filename, text),
        Statement::StartTransaction { .. } => Ok(json!({ "do": "begin" })),
        Statement::Commit { .. } => Ok(json!({ "do": "commit" })),
        Statement::Rollback { .. } => Ok(json!({ "do": "rollback" })),
        other => Err(unsupported(&first_words(&other.to_string()))),
    }
}

fn unsupported(what: &str) -> Error {
    Error::invalid(format!(
        "{what} ... is not part of the SQL that changes a store; use the call of the store that does it; \
         help(drumlin.Store) lists them"
    ))
}

fn first_words(text: &str) -> String {
    text.split_whitespace().take(2).collect::<Vec<_>>().join(" ")
}

/// A dotted or quoted name as a path.
fn path(name: &ObjectName) -> Result<String> {
    let names = name.0.iter().map(|part| part.as_ident().map(|ident| ident.value.as_str()));
    let names = names.collect::<Option<Vec<_>>>().ok_or_else(|| Error::invalid(format!("'{name}' names no table")))?;
    Ok(names.join("/"))
}

fn column(name: &ObjectName) -> Result<String> {
    match name.0.last().and_then(|part| part.as_ident()) {
        Some(ident) => Ok(ident.value.clone()),
        None => Err(Error::invalid(format!("'{name}' names no column"))),
    }
}

fn values(names: &[Ident]) -> Vec<&str> {
    names.iter().map(|name| name.value.as_str()).collect()
}

/// The only table of a clause.
fn table(of: &TableWithJoins) -> Result<String> {
    match &of.relation {
        TableFactor::Table { name, .. } if of.joins.is_empty() => path(name),
        other => Err(Error::invalid(format!("'{other}' is not one table, which is what can be changed"))),
    }
}

fn sets(assignments: &[Assignment]) -> Result<Vec<(String, String)>> {
    let set = |set: &Assignment| match &set.target {
        AssignmentTarget::ColumnName(name) => Ok((column(name)?, set.value.to_string())),
        AssignmentTarget::Tuple(_) => Err(Error::invalid(format!("'{set}' sets several columns at once; set each"))),
    };
    assignments.iter().map(set).collect()
}

fn insert(insert: &Insert) -> Result<Value> {
    let TableObject::TableName(name) = &insert.table else { return Err(unsupported("INSERT INTO FUNCTION")) };
    let returning = insert.returning.as_ref().map(|items| returned(items)).transpose()?;
    let columns = insert.columns.iter().map(column).collect::<Result<Vec<_>>>()?;
    let conflict = match (&insert.or, insert.ignore, insert.replace_into, &insert.on) {
        (Some(SqliteOnConflict::Replace), ..) | (_, _, true, _) => json!({ "do": "replace" }),
        (Some(SqliteOnConflict::Ignore), ..) | (_, true, ..) => json!({ "do": "nothing", "on": [] }),
        (Some(_), ..) => return Err(unsupported("INSERT OR")),
        (_, _, _, Some(OnInsert::OnConflict(conflict))) => {
            let on = match &conflict.conflict_target {
                Some(ConflictTarget::Columns(columns)) => values(columns),
                Some(ConflictTarget::OnConstraint(_)) => return Err(unsupported("ON CONSTRAINT")),
                None => Vec::new(),
            };
            match &conflict.action {
                OnConflictAction::DoNothing => json!({ "do": "nothing", "on": on }),
                OnConflictAction::DoUpdate(update) => {
                    let when = update.selection.as_ref().map(Expr::to_string);
                    json!({ "do": "update", "on": on, "set": sets(&update.assignments)?, "where": when })
                }
            }
        }
        (_, _, _, Some(_)) => return Err(unsupported("ON DUPLICATE KEY")),
        (None, false, false, None) => Value::Null,
    };
    let query = insert.source.as_ref().map(ToString::to_string);
    Ok(json!({
        "do": "insert", "table": path(name)?, "columns": columns, "query": query, "conflict": conflict, "returning": returning,
    }))
}

fn update(update: &Update) -> Result<Value> {
    if update.from.is_some() || update.returning.is_some() || update.limit.is_some() {
        return Err(unsupported("UPDATE FROM, RETURNING or LIMIT"));
    }
    let selection = update.selection.as_ref().map(Expr::to_string);
    Ok(json!({ "do": "update", "table": table(&update.table)?, "set": sets(&update.assignments)?, "where": selection }))
}

fn delete(delete: &Delete) -> Result<Value> {
    let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
    let [of] = &from[..] else { return Err(unsupported("DELETE of several tables")) };
    if delete.using.is_some() || delete.returning.is_some() || delete.limit.is_some() || !delete.tables.is_empty() {
        return Err(unsupported("DELETE USING, RETURNING or LIMIT"));
    }
    Ok(json!({ "do": "delete", "table": table(of)?, "where": delete.selection.as_ref().map(Expr::to_string) }))
}

/// A merge: its source as text behind `from`, what must be equal, and what is done in each case.
fn merge(merge: &Merge) -> Result<Value> {
    let TableFactor::Table { name, alias, .. } = &merge.table else {
        return Err(Error::invalid(format!("'{}' is not one table, which is what can be changed", merge.table)));
    };
    if merge.output.is_some() {
        return Err(unsupported("MERGE RETURNING"));
    }
    // Without an alias, a table is called by the last part of its name.
    let called = |alias: &Option<TableAlias>, name: Option<&ObjectName>| match alias {
        Some(alias) => Ok(Some(alias.name.value.clone())),
        None => name.map(column).transpose(),
    };
    let source = match &merge.source {
        TableFactor::Table { name, alias, .. } => called(alias, Some(name))?,
        TableFactor::Derived { alias, .. } => called(alias, None)?,
        other => return Err(Error::invalid(format!("'{other}' is no source of rows; expected a table or a query"))),
    };
    let mut equal = Vec::new();
    equalities(&merge.on, &mut equal)?;
    let clauses = merge.clauses.iter().map(merge_clause).collect::<Result<Vec<_>>>()?;
    Ok(json!({
        "do": "merge", "table": path(name)?, "called": called(alias, Some(name))?, "source": merge.source.to_string(),
        "source_called": source, "on": equal, "clauses": clauses,
    }))
}

/// The pairs of columns that a condition asks to be equal.
fn equalities(on: &Expr, found: &mut Vec<[String; 2]>) -> Result<()> {
    match on {
        Expr::Nested(inner) => equalities(inner, found),
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            equalities(left, found)?;
            equalities(right, found)
        }
        Expr::BinaryOp { left, op: BinaryOperator::Eq, right } => {
            found.push([left.to_string(), right.to_string()]);
            Ok(())
        }
        other => Err(Error::invalid(format!(
            "MERGE joins by columns that are equal, as in ON t.id = s.id; '{other}' belongs into WHEN ... AND"
        ))),
    }
}

fn merge_clause(clause: &MergeClause) -> Result<Value> {
    let when = match clause.clause_kind {
        MergeClauseKind::Matched => "matched",
        MergeClauseKind::NotMatched | MergeClauseKind::NotMatchedByTarget => "not_matched",
        MergeClauseKind::NotMatchedBySource => "by_source",
    };
    let condition = clause.predicate.as_ref().map(Expr::to_string);
    let done = match &clause.action {
        MergeAction::Delete { .. } => json!({ "do": "delete" }),
        MergeAction::Update(MergeUpdateExpr { kind, update_predicate: None, delete_predicate: None, .. }) => match kind
        {
            MergeUpdateKind::Set(assignments) => json!({ "do": "update", "set": sets(assignments)? }),
            _ => json!({ "do": "update", "set": null }),
        },
        MergeAction::Insert(MergeInsertExpr { columns, kind, insert_predicate: None, .. }) => {
            let columns = columns.iter().map(column).collect::<Result<Vec<_>>>()?;
            match kind {
                MergeInsertKind::Values(rows) => match &rows.rows[..] {
                    [row] => {
                        let values: Vec<String> = row.iter().map(ToString::to_string).collect();
                        json!({ "do": "insert", "columns": columns, "values": values })
                    }
                    _ => return Err(Error::invalid("MERGE inserts one row of VALUES for each row of the source")),
                },
                _ => json!({ "do": "insert", "columns": columns, "values": null }),
            }
        }
        other => return Err(unsupported(&format!("MERGE ... {}", first_words(&other.to_string())))),
    };
    Ok(json!({ "when": when, "condition": condition, "action": done }))
}

fn create(create: &CreateTable) -> Result<Value> {
    if create.temporary || create.external || create.like.is_some() || create.clone.is_some() {
        return Err(unsupported("CREATE TEMPORARY or EXTERNAL TABLE, LIKE or CLONE"));
    }
    let (mut columns, mut key, mut checks, mut unique) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for definition in &create.columns {
        let told = self::definition(definition)?;
        if told["unique"] == json!(true) {
            unique.push(json!([null, [definition.name.value]]));
        }
        if told["key"] == json!(true) {
            key.push(definition.name.value.clone());
        }
        checks.extend(told["checks"].as_array().cloned().unwrap_or_default());
        columns.push(told);
    }
    for constraint in &create.constraints {
        match constraint {
            TableConstraint::PrimaryKey(primary) => key.extend(names_of(&primary.columns)?),
            TableConstraint::Unique(own) => {
                unique.push(json!([own.name.as_ref().map(|name| &name.value), names_of(&own.columns)?]));
            }
            TableConstraint::Check(check) => {
                checks.push(json!([check.name.as_ref().map(|name| &name.value), check.expr.to_string()]));
            }
            other => return Err(unsupported(&first_words(&other.to_string()))),
        }
    }
    Ok(json!({
        "do": "create", "table": path(&create.name)?, "columns": columns, "key": key, "checks": checks, "unique": unique,
        "query": create.query.as_ref().map(ToString::to_string), "replace": create.or_replace,
        "if_not_exists": create.if_not_exists,
    }))
}

/// The columns of a key.
fn names_of(columns: &[IndexColumn]) -> Result<Vec<String>> {
    let name = |indexed: &IndexColumn| match &indexed.column.expr {
        Expr::Identifier(name) => Ok(name.value.clone()),
        other => Err(Error::invalid(format!("'{other}' is not a column, of which a key is made"))),
    };
    columns.iter().map(name).collect()
}

/// An index; without a name, it has that of its columns.
fn create_index(create: &CreateIndex) -> Result<Value> {
    if create.nulls_distinct == Some(false) {
        return Err(unsupported("NULLS NOT DISTINCT of CREATE INDEX"));
    }
    if create.using.is_some() || !create.include.is_empty() || !create.with.is_empty() {
        return Err(unsupported("USING, INCLUDE or WITH of CREATE INDEX"));
    }
    let value = |one: &IndexColumn| match one.column.options.sort {
        Some(OrderBySort::Desc) => {
            Err(Error::invalid(format!("'{}': an index serves both directions; leave DESC out", one.column)))
        }
        _ => Ok(one.column.expr.to_string()),
    };
    let columns = create.columns.iter().map(value).collect::<Result<Vec<_>>>()?;
    let name = create.name.as_ref().map_or_else(|| Ok(columns.join("_")), column)?;
    Ok(json!({
        "do": "create_index", "table": path(&create.table_name)?, "name": name, "columns": columns,
        "where": create.predicate.as_ref().map(ToString::to_string), "unique": create.unique, "if_not_exists": create.if_not_exists,
    }))
}

/// The columns that a statement returns; a star means all.
fn returned(items: &[SelectItem]) -> Result<Vec<String>> {
    let column = |item: &SelectItem| match item {
        SelectItem::UnnamedExpr(Expr::Identifier(name)) => Ok(name.value.clone()),
        SelectItem::Wildcard(_) if items.len() == 1 => Ok("*".to_owned()),
        other => Err(Error::invalid(format!("RETURNING gives columns by name, or *, not '{other}'"))),
    };
    items.iter().map(column).collect()
}

/// PostgreSQL's names of types whose default is a sequence.
const SERIAL: [(&str, &str); 4] =
    [("serial", "integer"), ("serial4", "integer"), ("bigserial", "bigint"), ("serial8", "bigint")];

/// Whether words of other systems say that a column counts.
fn is_counted(words: &[Token]) -> bool {
    let known = ["autoincrement", "auto_increment"];
    words.iter().any(|word| known.iter().any(|known| word.to_string().eq_ignore_ascii_case(known)))
}

fn definition(column: &ColumnDef) -> Result<Value> {
    let (mut not_null, mut key, mut unique, mut default, mut checks) = (false, false, false, None, Vec::new());
    for option in &column.options {
        match &option.option {
            ColumnOption::Null => {}
            ColumnOption::NotNull => not_null = true,
            ColumnOption::PrimaryKey(_) => key = true,
            ColumnOption::Unique(_) => unique = true,
            ColumnOption::Default(value) => default = Some(value.to_string()),
            ColumnOption::Generated { generation_expr: None, sequence_options, .. } => {
                let start = |option: &SequenceOptions| match option {
                    SequenceOptions::StartWith(first, _) => Some(first.to_string()),
                    _ => None,
                };
                let start = sequence_options.iter().flatten().find_map(start);
                default = Some(format!("sequence({})", start.unwrap_or_default()));
            }
            ColumnOption::DialectSpecific(words) if is_counted(words) => default = Some("sequence()".to_owned()),
            ColumnOption::Check(check) => {
                let name = option.name.as_ref().or(check.name.as_ref()).map(|name| &name.value);
                checks.push(json!([name, check.expr.to_string()]));
            }
            other => return Err(unsupported(&first_words(&other.to_string()))),
        }
    }
    let mut data_type = column.data_type.to_string();
    if let Some(counted) = SERIAL.iter().find(|(name, _)| data_type.eq_ignore_ascii_case(name)) {
        data_type = counted.1.to_owned();
        default.get_or_insert_with(|| "sequence()".to_owned());
    }
    Ok(json!({
        "name": column.name.value, "type": data_type, "not_null": not_null, "key": key, "default": default, "checks": checks,
        "unique": unique,
    }))
}

fn alter(operation: &AlterTableOperation) -> Result<Value> {
    Ok(match operation {
        AlterTableOperation::AddColumn { column_def, if_not_exists, .. } => {
            json!({ "do": "add", "column": definition(column_def)?, "if_not_exists": if_not_exists })
        }
        AlterTableOperation::DropColumn { column_names, if_exists, .. } => {
            json!({ "do": "drop", "columns": values(column_names), "if_exists": if_exists })
        }
        AlterTableOperation::RenameColumn { old_column_name, new_column_name } => {
            json!({ "do": "rename", "old": old_column_name.value, "new": new_column_name.value })
        }
        AlterTableOperation::RenameTable {
            table_name: RenameTableNameKind::As(name) | RenameTableNameKind::To(name),
        } => {
            json!({ "do": "move", "to": path(name)? })
        }
        AlterTableOperation::AlterColumn { column_name, op } => {
            let name = &column_name.value;
            match op {
                AlterColumnOperation::SetNotNull => json!({ "do": "not_null", "column": name }),
                AlterColumnOperation::DropNotNull => json!({ "do": "nullable", "column": name }),
                AlterColumnOperation::SetDefault { value } => {
                    json!({ "do": "default", "column": name, "value": value.to_string() })
                }
                AlterColumnOperation::DropDefault => json!({ "do": "no_default", "column": name }),
                AlterColumnOperation::SetDataType { data_type, using: None, .. } => {
                    json!({ "do": "widen", "column": name, "type": data_type.to_string() })
                }
                other => return Err(unsupported(&first_words(&other.to_string()))),
            }
        }
        AlterTableOperation::AddConstraint { constraint: TableConstraint::Check(check), .. } => {
            json!({ "do": "check", "name": check.name.as_ref().map(|name| &name.value), "check": check.expr.to_string() })
        }
        AlterTableOperation::DropConstraint { name, if_exists, .. } => {
            json!({ "do": "no_check", "name": name.value, "if_exists": if_exists })
        }
        other => return Err(unsupported(&format!("ALTER TABLE {}", first_words(&other.to_string())))),
    })
}

/// What is copied, and the rest of the statement from the name of the file on.
fn copy(source: &CopySource, to: bool, file: &str, text: &str) -> Result<Value> {
    let (table, columns, query) = match source {
        CopySource::Table { table_name, columns } => (Some(path(table_name)?), values(columns), None),
        CopySource::Query(query) => (None, Vec::new(), Some(query.to_string())),
    };
    let quoted = format!("'{}'", file.replace('\'', "''"));
    let rest = text.rfind(&quoted).map_or("", |at| text[at + quoted.len()..].trim_end_matches([';', ' ', '\n']));
    Ok(
        json!({ "do": "copy", "table": table, "columns": columns, "query": query, "to": to, "file": file, "options": rest }),
    )
}
