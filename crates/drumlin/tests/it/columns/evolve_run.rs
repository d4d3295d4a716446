//! What the model of tables that change does, done by the store, and whether the two agree.

use std::collections::{BTreeMap, BTreeSet};

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Field, SchemaRef};
use arrow::util::display::array_value_to_string;
use drumlin::base::Version;
use drumlin::store::{AsOf, ReadOptions, TableOptions, WriteOptions};
use drumlin::{
    Alter, ConstraintNames, Constraints, Expression, Fill, Filter, NewColumn, Result, SchemaMode, Store, Tables,
    TimeToLive,
};

use crate::columns::evolve_model::{Change, EvolveOp, EvolvingTable, Set, Shown};
use crate::columns::kinds::Kind;

/// The columns as they are now, whichever process changed them last.
fn newest(store: &Store, path: &str) -> Result<SchemaRef> {
    store.refresh()?;
    store.table(path).schema(&AsOf::Newest)
}

/// The name of the first column.
fn key(store: &Store, path: &str) -> Result<String> {
    Ok(newest(store, path)?.field(0).name().clone())
}

/// Applies `op` to the store.
pub fn run(store: &Store, op: &EvolveOp) -> Result<()> {
    let options = |evolves: bool| WriteOptions {
        schema: if evolves { SchemaMode::Evolve } else { SchemaMode::Strict },
        ..WriteOptions::default()
    };
    let strict = WriteOptions::default();
    match op {
        EvolveOp::Create(path, frame, true, _) => store.transact(|tx| {
            let key = TableOptions { key: vec!["k".into()], ..TableOptions::default() };
            tx.table(path).create(frame.batch().schema(), key)?;
            tx.table(path).upsert(frame.batch(), &strict).map(drop)
        })?,
        EvolveOp::Create(path, frame, false, sorted) => {
            let sort = Some(if *sorted { vec!["k".to_owned()] } else { vec![] });
            drop(store.write(path, frame.batch(), &WriteOptions { sort, ..strict })?);
        }
        EvolveOp::Write(path, frame) => drop(store.write(path, frame.batch(), &strict)?),
        EvolveOp::Append(path, frame, evolves) => drop(store.append(path, frame.batch(), &options(*evolves))?),
        EvolveOp::Upsert(path, frame, evolves) => {
            drop(store.table(path).upsert(frame.batch(), &options(*evolves))?);
        }
        EvolveOp::Alter(path, change) => {
            drop(store.table(path).alter(&alter(|| newest(store, path), change)?, &Default::default())?)
        }
        EvolveOp::Both(path, change, frame) => {
            store.refresh()?;
            let keyed = !store.table(path).order()?.key.is_empty();
            let alter = alter(|| newest(store, path), change)?;
            store.transact(|tx| {
                let table = tx.table(path);
                table.alter(&alter, &Default::default())?;
                match keyed {
                    true => table.upsert(frame.batch(), &strict).map(drop),
                    false => table.append(frame.batch(), &strict).map(drop),
                }
            })?;
        }
        EvolveOp::Update(path, column, set, rest) => {
            let table = store.table(path);
            let kind = Kind::of(newest(store, path)?.field_with_name(column)?.data_type());
            let set = match set {
                Set::To(None) => "null".to_owned(),
                Set::To(Some(value)) => kind.literal(*value),
                Set::Plus(other, more) => format!("{other} + {more}"),
            };
            let key = key(store, path)?;
            let filter = rest.map(|rest| format!("{key} % 5 = {rest}"));
            let set = [(column.clone(), Expression::parse(&set)?)];
            drop(table.update(&set, filter.as_deref(), &Default::default())?);
        }
        EvolveOp::Delete(path, rest) => {
            let filter = format!("{} % 5 = {rest}", key(store, path)?);
            drop(store.table(path).delete(&filter, &Default::default())?);
        }
        EvolveOp::Restore(path, version) => drop(store.restore(path, &AsOf::Version(Version(*version)))?),
        EvolveOp::DeleteVersion(path, version) => {
            drop(store.delete_versions(&[(path.clone(), vec![Version(*version)])], Default::default())?);
        }
    }
    Ok(())
}

/// A change for a table that has the columns of `newest`.
pub fn alter(newest: impl FnOnce() -> Result<SchemaRef>, change: &Change) -> Result<Alter> {
    Ok(match change {
        Change::Add(columns) => Alter::Add(
            columns
                .iter()
                .map(|(name, kind, default)| NewColumn {
                    field: Field::new(name, kind.data_type(), true),
                    fill: default.map_or(Fill::Null, |value| Fill::Default(kind.array(&[Some(value)]))),
                })
                .collect(),
        ),
        Change::Drop(names) => Alter::Drop(names.clone()),
        Change::Rename(names) => Alter::Rename(names.clone()),
        Change::Widen(name, kind) => Alter::Widen(vec![(name.clone(), kind.data_type())]),
        Change::Check(check, name, least) => {
            let checks = vec![(check.clone(), Filter::parse(&format!("{name} >= {least}"))?)];
            Alter::AddConstraints(Constraints { checks, ..Constraints::default() })
        }
        Change::NotNull(name) => {
            Alter::AddConstraints(Constraints { not_null: vec![name.clone()], ..Constraints::default() })
        }
        Change::Default(name, value) => {
            let kind = Kind::of(newest()?.field_with_name(name)?.data_type());
            let defaults = vec![(name.clone(), kind.array(&[Some(*value)]))];
            Alter::AddConstraints(Constraints { defaults, ..Constraints::default() })
        }
        Change::Release(checks, not_null) => Alter::DropConstraints(ConstraintNames {
            checks: checks.clone(),
            not_null: not_null.clone(),
            ..ConstraintNames::default()
        }),
        Change::Ttl(Some(column)) => Alter::SetTtl(TimeToLive { column: column.clone(), after_micros: 0 }),
        Change::Ttl(None) => Alter::DropTtl,
    })
}

/// What a version of a table in the store shows, as texts.
fn read(store: &Store, path: &str, as_of: AsOf) -> Result<(Vec<(String, DataType)>, Vec<Vec<String>>)> {
    let table = store.table(path);
    let schema = table.schema(&as_of)?;
    let columns = schema.fields().iter().map(|f| (f.name().clone(), f.data_type().clone())).collect();
    let mut rows = Vec::new();
    for batch in table.collect(&ReadOptions { as_of, ..ReadOptions::default() })? {
        assert_eq!(batch.schema(), schema, "of batches and of the version");
        assert!(schema.fields().iter().all(|field| field.metadata().is_empty()), "{schema}");
        for row in 0..batch.num_rows() {
            let text = |column: &ArrayRef| array_value_to_string(column, row).unwrap();
            rows.push(batch.columns().iter().map(text).collect());
        }
    }
    Ok((columns, rows))
}

fn same(store: &Store, path: &str, as_of: AsOf, shown: &Shown) -> std::result::Result<(), String> {
    let expected_columns: Vec<(String, DataType)> =
        shown.columns.iter().map(|(name, kind, _)| (name.clone(), kind.data_type())).collect();
    let text = |row: &Vec<Option<i64>>| {
        row.iter().zip(&shown.columns).map(|(value, (_, kind, _))| kind.shown(*value)).collect::<Vec<_>>()
    };
    let expected_rows: Vec<Vec<String>> = shown.rows.iter().map(text).collect();
    let what = format!("{path} as of {as_of:?}");
    let (columns, rows) = read(store, path, as_of.clone()).map_err(|e| format!("{what}: {e}"))?;
    constrains(store, path, &as_of, shown)?;
    if columns != expected_columns || rows != expected_rows {
        return Err(format!("{what}: {columns:?} {rows:?}, expected {expected_columns:?} {expected_rows:?}"));
    }
    // Filters see the columns in the same types: by statistics, and by values.
    for (at, (name, kind, _)) in shown.columns.iter().enumerate().filter(|(_, (_, kind, _))| *kind != Kind::Null) {
        let wanted = kind.literal(4);
        let filter = Filter::parse(&format!("{name} = {wanted}")).map_err(|e| e.to_string())?;
        let scan = drumlin::ScanOptions { filter: Some(filter), ..Default::default() };
        let options = ReadOptions::of(as_of.clone(), scan);
        let found = store.table(path).read(&options).and_then(|scan| scan.count());
        let found = found.map_err(|e| format!("{what}, {name} = {wanted}: {e}"))?;
        let expected = shown.rows.iter().filter(|row| row[at] == Some(4)).count() as u64;
        if found != expected {
            return Err(format!("{what}: {found} rows with {name} = {wanted}, expected {expected}"));
        }
    }
    Ok(())
}

/// Checks that the constraints are those of the model; the error is the difference.
pub fn constrains(store: &Store, path: &str, as_of: &AsOf, shown: &Shown) -> std::result::Result<(), String> {
    let found = store.table(path).constraints(as_of).map_err(|e| format!("{path}: {e}"))?;
    let ttl = store.table(path).ttl(as_of).map_err(|e| format!("{path}: {e}"))?.map(|ttl| ttl.column);
    let checks: BTreeSet<&String> = found.checks.iter().map(|(name, _)| name).collect();
    // The key takes no nulls, either.
    let not_null = |name: &&String| Some(*name) != shown.columns.first().map(|(key, ..)| key);
    let defaults: Vec<(&String, String)> =
        found.defaults.iter().map(|(name, value)| (name, array_value_to_string(value, 0).unwrap())).collect();
    let expected = shown.columns.iter().filter_map(|(name, kind, value)| Some((name, kind.shown(Some((*value)?)))));
    let same = checks == shown.checks.keys().collect()
        && found.not_null.iter().filter(not_null).collect::<BTreeSet<_>>()
            == shown.not_null.iter().filter(not_null).collect()
        && defaults == expected.collect::<Vec<_>>()
        && ttl == shown.ttl;
    if same { Ok(()) } else { Err(format!("{path} as of {as_of:?} has {found:?}, not those of {shown:?}")) }
}

/// Checks that the store agrees with the model; the error is the difference.
pub fn compare(store: &Store, tables: &BTreeMap<String, EvolvingTable>) -> std::result::Result<(), String> {
    let found = store.tree().list("e/**").map_err(|e| e.to_string())?;
    let found: Vec<String> = found.into_iter().filter(|e| e.table.is_some()).map(|e| e.path).collect();
    if found != tables.keys().cloned().collect::<Vec<_>>() {
        return Err(format!("tables: {found:?}"));
    }
    for (path, table) in tables {
        same(store, path, AsOf::Newest, &table.now)?;
        for (version, shown) in &table.versions {
            same(store, path, AsOf::Version(Version(*version)), shown)?;
        }
    }
    Ok(())
}
