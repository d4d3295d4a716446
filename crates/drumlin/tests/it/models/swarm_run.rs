//! What the model of `swarm` does, done by a store, and whether the two agree.

use std::collections::{BTreeMap, BTreeSet};

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Float64Type, Int32Type, Int64Type, TimestampMicrosecondType};
use drumlin::base::{Task, Version};
use drumlin::catalog::{Payload, Retention};
use drumlin::store::{
    AsOf, CheckpointOptions, IndexOptions, LookupOptions, ReadOptions, ReclaimOptions, TableOptions, WriteOptions,
};
use drumlin::table::{PlanOptions, ROWS_MAX};
use drumlin::{
    Alter, Error, ErrorKind, Existing, Expression, Fill, Filter, Merge, NewColumn, Result, RowLayout, SchemaMode,
    Store, Tables, WhenMatched, WhenNotMatched,
};

use crate::columns::evolve_model::{Frame, Shown};
use crate::columns::evolve_run;
use crate::columns::kinds::{FUTURE, Kind};
use crate::models::swarm_model::{ALL, Model, Table};
use crate::models::swarm_op::{Kinded, Op, Where, Wrong};
use crate::support::Checked;

/// Whether an error says that an operation cannot be done now.
pub fn refuses(e: &Error) -> bool {
    use ErrorKind::{AlreadyExists, ConditionFailed, InvalidArgument, NotFound, SchemaMismatch};
    [NotFound, AlreadyExists, InvalidArgument, ConditionFailed, SchemaMismatch].contains(&e.kind())
}

fn options(evolves: bool, many: bool) -> WriteOptions {
    WriteOptions {
        schema: if evolves { SchemaMode::Evolve } else { SchemaMode::Strict },
        // Metadata need a version, so the rows become row groups.
        metadata: many.then(|| "{}".to_owned()),
        ..WriteOptions::default()
    }
}

fn keys(name: &str, keys: &[i64]) -> RecordBatch {
    let frame =
        Frame { columns: vec![(name.to_owned(), Kind::Wide)], rows: keys.iter().map(|k| vec![Some(*k)]).collect() };
    frame.batch()
}

/// The name of the first column of a table, which must be there.
fn key(place: &impl Tables, path: &str) -> Result<String> {
    Ok(place.table(path).schema(&AsOf::Newest)?.field(0).name().clone())
}

/// The key of a table and another column.
fn two_columns(place: &impl Tables, path: &str, column: &str) -> Result<Vec<(String, Kind)>> {
    let schema = place.table(path).schema(&AsOf::Newest)?;
    let kind = schema.field_with_name(column).map_or(Kind::Wide, |field| {
        let of = |kind: &&Kind| kind.data_type() == *field.data_type();
        *Kind::TYPED.iter().find(of).unwrap_or(&Kind::Wide)
    });
    Ok(vec![(schema.field(0).name().clone(), Kind::Wide), (column.to_owned(), kind)])
}

/// A checkpoint, which leaves nothing undone.
pub fn checkpoint(store: &Store, plan: PlanOptions) -> Result<()> {
    let report = store.checkpoint(&CheckpointOptions { plan, ..CheckpointOptions::default() })?;
    assert!(report.failures.is_empty(), "a checkpoint left undone: {:?}", report.failures);
    Ok(())
}

/// Does `op` in a store or in a transaction.
pub fn change<P: Tables>(place: &P, op: &Op) -> Result<()> {
    let none = WriteOptions::default();
    let by_rest = |path: &str, rest: i64| Ok::<_, Error>(format!("{} % 5 = {rest}", key(place, path)?));
    match op {
        Op::Create(path, Kinded::Keyed, frame) => {
            let options = TableOptions { key: vec![frame.columns[0].0.clone()], ..TableOptions::default() };
            drop(place.table(path).create(frame.batch().schema(), options)?);
            drop(place.table(path).append(frame.batch(), &none)?);
        }
        Op::Create(path, kind, frame) => {
            let sort = if *kind == Kinded::Sorted { vec![frame.columns[0].0.clone()] } else { Vec::new() };
            drop(place.table(path).create(frame.batch().schema(), TableOptions { sort, ..TableOptions::default() })?);
            drop(place.table(path).append(frame.batch(), &none)?);
        }
        Op::Write(path, frame) => {
            key(place, path)?;
            drop(place.write(path, frame.batch(), &none)?);
        }
        Op::Append(path, frame, evolves) => drop(place.append(path, frame.batch(), &options(*evolves, false))?),
        Op::Replace(path, frame) => drop(place.replace(path, frame.batch(), &none)?),
        Op::ReplaceWhere(path, rest, frame) => {
            drop(place.table(path).replace_where(frame.batch(), &by_rest(path, *rest)?, &none)?);
        }
        Op::Upsert(path, frame, evolves, many) => {
            drop(place.table(path).upsert(frame.batch(), &options(*evolves, *many))?);
        }
        Op::Insert(path, frame, many) => drop(place.table(path).insert(frame.batch(), &options(false, *many))?),
        Op::DeleteKeys(path, ids, many) => {
            let keys = keys(&key(place, path)?, ids);
            drop(place.table(path).delete_keys(keys, &options(false, *many))?);
        }
        Op::Increment(path, column, amounts) => {
            let rows = amounts.iter().map(|(key, by)| vec![Some(*key), Some(*by)]).collect();
            let amounts = Frame { columns: two_columns(place, path, column)?, rows };
            drop(place.table(path).increment(&amounts.batch(), &none)?);
        }
        Op::CompareAndSet(path, column, key, expected, new) => {
            let columns = two_columns(place, path, column)?;
            let row = |value| Frame { columns: columns.clone(), rows: vec![vec![Some(*key), value]] }.batch();
            drop(place.table(path).compare_and_set(&row(*expected), &row(*new), &none)?);
        }
        Op::Update(path, column, set, rest) => {
            let schema = place.table(path).schema(&AsOf::Newest)?;
            let kind = schema.field_with_name(column).map_or(Kind::Null, |field| Kind::of(field.data_type()));
            let set = set.map_or_else(|| "null".to_owned(), |value| kind.literal(value));
            let filter = rest.map(|rest| by_rest(path, rest)).transpose()?;
            let set = [(column.clone(), Expression::parse(&set)?)];
            drop(place.table(path).update(&set, filter.as_deref(), &Default::default())?);
        }
        Op::Merge(path, frame) => {
            let merge = Merge {
                on: vec![key(place, path)?],
                matched: vec![(None, WhenMatched::UpdateAll)],
                not_matched: vec![(None, WhenNotMatched::InsertAll)],
                ..Merge::default()
            };
            drop(place.table(path).merge(frame.batch(), &merge, &Default::default())?);
        }
        Op::Delete(path, which) => {
            let filter = match which {
                Where::Rest(rest) => by_rest(path, *rest)?,
                Where::NotNull(column) => format!("{column} is not null"),
                Where::From(least) => format!("{} >= {least}", key(place, path)?),
            };
            drop(place.table(path).delete(&filter, &Default::default())?);
        }
        Op::Alter(path, change) => {
            let alter = evolve_run::alter(|| place.table(path).schema(&AsOf::Newest), change)?;
            drop(place.table(path).alter(&alter, &Default::default())?);
        }
        Op::Computed(path, name, from, more) => {
            let schema = place.table(path).schema(&AsOf::Newest)?;
            let float = schema.field_with_name(from).is_ok_and(|field| field.data_type() == &DataType::Float64);
            let kind = if float { Kind::Float } else { Kind::Wide };
            let field = arrow::datatypes::Field::new(name, kind.data_type(), true);
            let fill = Fill::Computed(Expression::parse(&format!("{from} + {more}"))?);
            drop(place.table(path).alter(&Alter::Add(vec![NewColumn { field, fill }]), &Default::default())?);
        }
        Op::Index(path, at) => {
            let schema = place.table(path).schema(&AsOf::Newest)?;
            let name = schema.field(at % schema.fields().len()).name();
            let column = Expression::parse(&format!("\"{name}\""))?;
            // Keys are different in each row, so nothing may be refused because of it.
            let unique = place.table(path).stat()?.sort.first() == Some(name) && place.table(path).stat()?.keyed;
            let options = IndexOptions { unique, ..IndexOptions::default() };
            match place.table(path).create_index(&at.to_string(), &[column], &options) {
                Err(e) if e.kind() == ErrorKind::AlreadyExists => place.table(path).drop_index(&at.to_string())?,
                done => done?,
            }
        }
        Op::Layout(path, at) => {
            let schema = place.table(path).schema(&AsOf::Newest)?;
            let name = |at: usize| schema.field(at % schema.fields().len()).name().clone();
            let layout = match at / 4 {
                0 => None,
                1 => Some(RowLayout::Sorted(vec![name(*at)])),
                _ => Some(RowLayout::Curve(vec![name(*at), name(at + 1)])),
            };
            match place.table(path).set_layout(layout.as_ref()) {
                // It is sorted, or has too few columns, or such as have no order.
                Err(e) if e.kind() == ErrorKind::InvalidArgument && layout.is_some() => {}
                done => done?,
            }
        }
        Op::Restore(path, version) => {
            drop(place.restore(path.as_str(), &AsOf::Version(Version(*version)))?);
        }
        Op::DeleteVersions(path, versions) => {
            let versions = versions.iter().map(|v| Version(*v)).collect();
            drop(place.delete_versions(&[(path.clone(), versions)], Default::default())?);
        }
        Op::Copy(from, to, version) => {
            key(place, from)?;
            let as_of = version.map_or(AsOf::Newest, |version| AsOf::Version(Version(version)));
            drop(place.copy(from, to, &as_of, Existing::Refuse)?);
        }
        Op::CopyOver(from, to) => {
            key(place, from)?;
            key(place, to)?;
            drop(place.copy(from, to, &AsOf::Newest, Existing::Replace)?);
        }
        Op::Move(from, to) => {
            key(place, from)?;
            drop(place.relocate(from, to, Existing::Refuse)?);
        }
        Op::Drop(path) => drop(place.drop(path.as_str())?),
        Op::Refused(path, wrong) => return refused(place, path, *wrong),
        _ => unreachable!("{op:?} is done by a store alone"),
    }
    Ok(())
}

/// A call that cannot succeed.
fn refused<P: Tables>(place: &P, path: &str, wrong: Wrong) -> Result<()> {
    let (table, none) = (place.table(path), WriteOptions::default());
    let set = |text: &str| Expression::parse(text).map(|value| vec![("nowhere".to_owned(), value)]);
    let more =
        Frame { columns: vec![("k".into(), Kind::Wide), ("nowhere".into(), Kind::Wide)], rows: vec![vec![Some(1); 2]] };
    match wrong {
        Wrong::Update => drop(table.update(&set("1")?, None, &Default::default())?),
        Wrong::Delete => drop(table.delete("nowhere = 1", &Default::default())?),
        Wrong::Merge => {
            let matched = vec![(None, WhenMatched::Update(set("1")?))];
            let merge = Merge { on: vec![key(place, path)?], matched, ..Merge::default() };
            drop(table.merge(more.batch(), &merge, &Default::default())?);
        }
        Wrong::Append => drop(table.append(more.batch(), &none)?),
        Wrong::Upsert => drop(table.upsert(more.batch(), &none)?),
        Wrong::Create => {
            table.schema(&AsOf::Newest)?;
            drop(table.create(more.batch().schema(), TableOptions::default())?);
        }
        Wrong::Restore => drop(place.restore(path, &AsOf::Version(Version(1 << 40)))?),
        Wrong::Alter => drop(table.alter(&Alter::Drop(vec!["nowhere".into()]), &Default::default())?),
        Wrong::DeleteVersions => {
            drop(place.delete_versions(&[(path.to_owned(), vec![Version(1 << 40)])], Default::default())?);
        }
        Wrong::Snapshot => drop(
            place.table(path).collect(&ReadOptions { as_of: AsOf::Snapshot("none".into()), ..Default::default() })?,
        ),
        Wrong::Copy => drop(place.copy(path, path, &AsOf::Newest, Existing::Refuse)?),
        Wrong::Node => drop(place.tree().create("n/there", Payload::from(1))?),
    }
    Ok(())
}

/// Does `op`; `refused` says of the operations of a transaction whether they are to be refused.
pub fn run(store: &Store, op: &Op, refused: &[bool]) -> Result<()> {
    match op {
        Op::Keep(path, keep) => store.set_retention(path, keep.map(Retention::KeepLast))?,
        Op::Undrop(path) => store.undrop(path, None)?,
        Op::Snapshot(name) => drop(store.snapshot(name, "s/**")?),
        Op::DropSnapshot(name) => store.drop_snapshot(name)?,
        Op::Together(ops, flushes) => together(store, ops, *flushes, refused)?,
        Op::Checkpoint => {
            // So few rows a row group that some tables have several.
            let group_rows = if store.seq()?.0 % 2 == 0 { 4 } else { ROWS_MAX };
            checkpoint(store, PlanOptions { group_rows, ..PlanOptions::default() })?;
        }
        Op::Purging => {
            let none = PlanOptions { dead_share_min: 0.0, repack_dead_share_min: 0.0, ..PlanOptions::default() };
            checkpoint(store, none)?;
        }
        Op::Erase(rest) => {
            let receipt = store.purge("s/**", &Filter::parse(&format!("k % 5 = {rest}"))?)?.execute(&Task::default())?;
            assert_eq!(receipt.proof.matching, 0, "{receipt:?}");
        }
        Op::Reclaim => drop(store.reclaim(&Default::default())?),
        Op::Audit => {
            let all = ReclaimOptions { audit: true, fence_idle_micros: Some(0), ..ReclaimOptions::default() };
            drop(store.reclaim(&all)?);
        }
        Op::Create(path, ..) => store.transact(|tx| match tx.table(path).exists()? {
            true => Err(Error::already_exists(path)),
            false => change(tx, op),
        })?,
        _ => change(store, op)?,
    }
    Ok(())
}

fn together(store: &Store, ops: &[Op], flushes: bool, refused: &[bool]) -> Result<()> {
    let mut attempts = 0;
    store.transact(|tx| {
        attempts += 1;
        assert!(attempts < 50, "a transaction runs again for ever");
        let count = tx.tree().get("n/count")?.and_then(|count| count.to_json()?.as_i64()).unwrap_or(0);
        for (op, refused) in ops.iter().zip(refused) {
            match (change(tx, op), refused) {
                (Ok(()), false) => {}
                // Rows by key of its own keep it from other changes of the table.
                (Err(e), true) if refuses(&e) || e.kind() == ErrorKind::Conflict => {}
                (Err(e), false) if e.kind() == ErrorKind::Conflict => return Err(e),
                (answer, _) => panic!("in a transaction, {op:?}, which is to be refused: {refused}, gave {answer:?}"),
            }
        }
        tx.tree().put("n/count", Payload::from(count + 1))?;
        if flushes && attempts == 1 {
            checkpoint(store, PlanOptions::default())?;
        }
        Ok(())
    })
}

/// What a version of a table shows.
fn read(store: &Store, path: &str, as_of: AsOf) -> Result<(Vec<(String, DataType)>, Vec<Vec<Option<i64>>>)> {
    let schema = store.table(path).schema(&as_of)?;
    let columns = schema.fields().iter().map(|f| (f.name().clone(), f.data_type().clone())).collect();
    let mut rows = Vec::new();
    for batch in store.table(path).collect(&ReadOptions { as_of, ..ReadOptions::default() })? {
        assert_eq!(batch.schema(), schema, "of batches and of the version");
        let columns: Vec<Vec<Option<i64>>> = batch.columns().iter().map(numbers).collect();
        rows.extend((0..batch.num_rows()).map(|row| columns.iter().map(|column| column[row]).collect::<Vec<_>>()));
    }
    Ok((columns, rows))
}

/// The numbers of which a column was made: see [`Kind::array`].
fn numbers(column: &ArrayRef) -> Vec<Option<i64>> {
    match column.data_type() {
        DataType::Int32 => column.as_primitive::<Int32Type>().iter().map(|v| v.map(i64::from)).collect(),
        DataType::Int64 => column.as_primitive::<Int64Type>().iter().collect(),
        DataType::Float64 => column.as_primitive::<Float64Type>().iter().map(|v| v.map(|v| v as i64)).collect(),
        DataType::Utf8 => {
            let number = |text: &str| text.trim_start_matches('x').parse().expect("a text of these tests");
            column.as_string::<i32>().iter().map(|v| v.map(number)).collect()
        }
        DataType::Timestamp(..) => {
            let number = |time: i64| (time - FUTURE) / 1_000_000;
            column.as_primitive::<TimestampMicrosecondType>().iter().map(|v| v.map(number)).collect()
        }
        _ => vec![None; column.len()],
    }
}

/// Whether a version shows what is expected; adopts its order, where that is open.
fn shows(store: &Store, path: &str, as_of: AsOf, expected: &mut Shown, unordered: bool) -> Checked {
    let what = format!("{path} as of {as_of:?}");
    let (columns, rows) = read(store, path, as_of.clone()).map_err(|e| format!("{what}: {e}"))?;
    let expected_columns: Vec<(String, DataType)> =
        expected.columns.iter().map(|(name, kind, _)| (name.clone(), kind.data_type())).collect();
    let sorted = |rows: &[Vec<Option<i64>>]| {
        let mut rows = rows.to_vec();
        rows.sort();
        rows
    };
    let alike = rows == expected.rows || unordered && sorted(&rows) == sorted(&expected.rows);
    if columns != expected_columns || !alike {
        return Err(format!("{what}: {columns:?} {rows:?}, expected {expected_columns:?} {:?}", expected.rows));
    }
    expected.rows = rows;
    if store.table(path).indexes().is_ok_and(|indexes| !indexes.is_empty()) {
        return filtered(store, path, as_of, &expected.rows);
    }
    Ok(())
}

/// Whether a filter finds what it is true for among all rows of a version.
fn filtered(store: &Store, path: &str, as_of: AsOf, rows: &[Vec<Option<i64>>]) -> Checked {
    let schema = store.table(path).schema(&as_of).map_err(|e| e.to_string())?;
    let Some(wanted) = rows.get(rows.len() / 2) else { return Ok(()) };
    for (at, field) in schema.fields().iter().enumerate() {
        let name = field.name();
        let text = match (wanted[at], field.data_type()) {
            (None, _) => format!("\"{name}\" is null"),
            (Some(n), DataType::Utf8) => format!("\"{name}\" in ('{n}', 'x{n}')"),
            (Some(n), data_type) => format!("\"{name}\" = {}", Kind::of(data_type).literal(n)),
        };
        let filter = Some(Filter::parse(&text).map_err(|e| e.to_string())?);
        let read = ReadOptions { as_of: as_of.clone(), filter, ..ReadOptions::default() };
        let found = store.table(path).collect(&read).map_err(|e| format!("{path} where {text}: {e}"))?;
        let mut own: Vec<Vec<Option<i64>>> = Vec::new();
        for batch in &found {
            let columns: Vec<Vec<Option<i64>>> = batch.columns().iter().map(numbers).collect();
            own.extend((0..batch.num_rows()).map(|row| columns.iter().map(|column| column[row]).collect::<Vec<_>>()));
        }
        let all: Vec<Vec<Option<i64>>> = rows.iter().filter(|row| row[at] == wanted[at]).cloned().collect();
        if own != all {
            return Err(format!("{path} as of {as_of:?} where {text}: {own:?}, expected {all:?}"));
        }
    }
    Ok(())
}

/// How much is compared.
#[derive(Clone, Copy, Debug, Default)]
pub struct Extent {
    /// Also what versions show that were there before, and snapshots.
    pub all: bool,
    /// Nothing was done, so that there are the same versions as before.
    pub same: bool,
}

/// Checks that everything readable agrees with the model, which learns of versions and of places that were left open.
pub fn compare(store: &Store, model: &mut Model, extent: Extent) -> Checked {
    let text = |e: Error| e.to_string();
    let found: BTreeSet<String> = store.tables("s/**").map_err(text)?.into_iter().collect();
    let expected: BTreeSet<String> = model.tables.keys().cloned().collect();
    if found != expected {
        return Err(format!("tables: {found:?}, expected {expected:?}"));
    }
    let keep = model.keep.clone();
    for (path, table) in &mut model.tables {
        newest(store, path, table)?;
        let before: Vec<u64> = table.versions.keys().copied().collect();
        versions(store, path, table, keep.get(path).copied(), extent.all)?;
        let after: Vec<u64> = table.versions.keys().copied().collect();
        if extent.same && before != after {
            return Err(format!("{path} had the versions {before:?}, and has {after:?} after a refused call"));
        }
        if table.is_keyed() {
            look_up(store, path, &table.now)?;
        }
        let kept = keep.get(path).filter(|n| **n != ALL).map(|n| Retention::KeepLast(*n)).unwrap_or_default();
        let found = store.retention(path).map_err(text)?;
        if found != kept {
            return Err(format!("retention of {path}: {found:?}, expected {kept:?}"));
        }
    }
    let names: Vec<String> = store.snapshots().map_err(text)?.into_iter().map(|snapshot| snapshot.name).collect();
    if names != model.snapshots.keys().cloned().collect::<Vec<_>>() {
        return Err(format!("snapshots: {names:?}"));
    }
    for (name, pins) in model.snapshots.iter_mut().filter(|_| extent.all) {
        for (path, shown) in pins {
            shows(store, path, AsOf::Snapshot(name.clone()), shown, false)?;
        }
    }
    let mut trash: Vec<String> = store.trash().map_err(text)?.into_iter().map(|item| item.path).collect();
    let mut expected: Vec<String> = model.trash.iter().map(|(path, _)| path.clone()).collect();
    trash.sort();
    expected.sort();
    if trash != expected {
        return Err(format!("trash: {trash:?}, expected {expected:?}"));
    }
    let count = store.tree().get("n/count").map_err(text)?.and_then(|count| count.to_json()?.as_i64()).unwrap_or(0);
    if count != model.nodes { Err(format!("transactions: {count}, expected {}", model.nodes)) } else { Ok(()) }
}

fn newest(store: &Store, path: &str, table: &mut Table) -> Checked {
    let shown = |shown: &mut Shown| {
        shows(store, path, AsOf::Newest, shown, table.unordered)?;
        evolve_run::constrains(store, path, &AsOf::Newest, shown)
    };
    let found = shown(&mut table.now);
    if let (Err(_), Some(mut instead)) = (&found, table.instead.take()) {
        shown(&mut instead)?;
        table.now = instead;
        return Ok(());
    }
    found?;
    let rows = store.table(path).stat().map_err(|e| e.to_string())?.rows;
    if rows != table.now.rows.len() as u64 {
        return Err(format!("{path} counts {rows} rows, expected {}", table.now.rows.len()));
    }
    Ok(())
}

/// Checks that versions stay as they are, come with what was shown, and go only for a reason.
fn versions(store: &Store, path: &str, table: &mut Table, keep: Option<u64>, all: bool) -> Checked {
    let text = |e: Error| format!("{path}: {e}");
    let listed = store.table(path).versions().map_err(text)?;
    let numbers: Vec<u64> = listed.iter().map(|info| info.version.0).collect();
    let newer = |number: u64| numbers.iter().filter(|n| **n > number).count() as u64;
    let expires = |number: u64| [keep, table.kept].into_iter().flatten().any(|keep| newer(number) >= keep);
    let gone = |number: &u64| !numbers.contains(number) && !expires(*number);
    if let Some(lost) = table.versions.keys().find(|number| gone(number)) {
        return Err(format!("version {lost} of {path} is gone: {numbers:?} are left, {keep:?} are kept"));
    }
    if let Some(back) = numbers.iter().find(|number| table.deleted.contains(number)) {
        return Err(format!("version {back} of {path} was deleted, and is there: {numbers:?}"));
    }
    let last = table.versions.keys().next_back().copied();
    let known = std::mem::take(&mut table.versions);
    // From the newest on, each of the new ones shows an earlier step.
    let mut before = table.steps.len();
    for info in listed.iter().rev() {
        let (number, as_of) = (info.version.0, AsOf::Version(info.version));
        let shown = match known.get(&number) {
            Some(shown) => {
                let mut shown = shown.clone();
                if all {
                    shows(store, path, as_of, &mut shown, false)?;
                }
                shown
            }
            None if last.is_some_and(|last| number < last) && table.deleted.is_empty() => {
                return Err(format!("version {number} of {path} came after {last:?}"));
            }
            None => {
                let mut steps = table.steps.iter().cloned().enumerate().take(before).rev();
                let fits = steps.find_map(|(at, mut step)| {
                    shows(store, path, as_of.clone(), &mut step, table.unordered).ok()?;
                    evolve_run::constrains(store, path, &as_of, &step).ok()?;
                    Some((at, step))
                });
                let Some((at, step)) = fits else {
                    let found = read(store, path, as_of).map_err(text)?;
                    return Err(format!("version {number} of {path} shows {found:?}, none of {:?}", table.steps));
                };
                before = at;
                step
            }
        };
        if info.rows != shown.rows.len() as u64 {
            return Err(format!("version {number} of {path} counts {} rows, not {}", info.rows, shown.rows.len()));
        }
        table.versions.insert(number, shown);
    }
    let in_memory = store.table(path).stat().map_err(text)?.memory_keys > 0;
    let newest = table.versions.values().next_back();
    if !in_memory && newest.is_none_or(|newest| newest.rows != table.now.rows) {
        return Err(format!("the newest version of {path} is not what it shows: {newest:?}"));
    }
    table.unordered = false;
    Ok(())
}

/// Looks every possible key up.
fn look_up(store: &Store, path: &str, now: &Shown) -> Checked {
    let asked: Vec<i64> = (0..210).map(|n| (n * 37) % 210).collect();
    let there: BTreeMap<i64, &Vec<Option<i64>>> = now.rows.iter().map(|row| (row[0].unwrap_or(-1), row)).collect();
    let found = store.table(path).get_many(&keys(&now.columns[0].0, &asked), &LookupOptions::default());
    let found = found.map_err(|e| format!("look-up in {path}: {e}"))?;
    let columns: Vec<Vec<Option<i64>>> = found.rows.columns().iter().map(numbers).collect();
    for (at, key) in asked.iter().enumerate() {
        let row: Option<Vec<Option<i64>>> = found.found.value(at).then(|| columns.iter().map(|c| c[at]).collect());
        if row.as_ref() != there.get(key).copied() {
            return Err(format!("look-up of {key} in {path}: {row:?}, expected {:?}", there.get(key)));
        }
    }
    Ok(())
}
