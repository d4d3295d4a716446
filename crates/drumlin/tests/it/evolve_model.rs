//! Tables whose columns change: a model that holds every version as names, kinds and numbers; operations on it and on the
//! store, and whether the two agree.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int32Array, Int64Array, NullArray, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use arrow::util::display::array_value_to_string;
use drumlin::base::Version;
use drumlin::store::{AsOf, ReadOptions, TableOptions, WriteOptions};
use drumlin::{Alter, Expression, Fill, NewColumn, Result, SchemaMode, Store, Tables};

/// The type of a column. A value is a number in all of them, shown in its own way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Null,
    Narrow,
    Wide,
    Float,
    Text,
}

impl Kind {
    pub const TYPED: [Kind; 4] = [Kind::Narrow, Kind::Wide, Kind::Float, Kind::Text];

    pub fn data_type(self) -> DataType {
        match self {
            Kind::Null => DataType::Null,
            Kind::Narrow => DataType::Int32,
            Kind::Wide => DataType::Int64,
            Kind::Float => DataType::Float64,
            Kind::Text => DataType::Utf8,
        }
    }

    fn array(self, values: &[Option<i64>]) -> ArrayRef {
        let values = values.iter().copied();
        match self {
            Kind::Null => Arc::new(NullArray::new(values.len())),
            Kind::Narrow => Arc::new(values.map(|v| v.map(|v| v as i32)).collect::<Int32Array>()),
            Kind::Wide => Arc::new(values.collect::<Int64Array>()),
            Kind::Float => Arc::new(values.map(|v| v.map(|v| v as f64)).collect::<Float64Array>()),
            Kind::Text => Arc::new(values.map(|v| v.map(|v| format!("x{v}"))).collect::<StringArray>()),
        }
    }

    fn shown(self, value: Option<i64>) -> String {
        match (self, value) {
            (_, None) | (Kind::Null, _) => String::new(),
            (Kind::Narrow | Kind::Wide, Some(value)) => format!("{value}"),
            (Kind::Float, Some(value)) => format!("{value}.0"),
            (Kind::Text, Some(value)) => format!("x{value}"),
        }
    }

    fn is_number(self) -> bool {
        matches!(self, Kind::Narrow | Kind::Wide | Kind::Float)
    }

    /// Whether rows of a frame's kind can be brought into a column of this one as it is.
    fn takes(self, came: Kind) -> bool {
        came == self
            || came == Kind::Null
            || matches!((self, came), (Kind::Wide, Kind::Narrow) | (Kind::Float, Kind::Narrow | Kind::Wide))
    }
}

/// A frame.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    pub columns: Vec<(String, Kind)>,
    pub rows: Vec<Vec<Option<i64>>>,
}

impl Frame {
    pub fn batch(&self) -> RecordBatch {
        let column = |at: usize| self.rows.iter().map(|row| row[at]).collect::<Vec<_>>();
        let arrays = self.columns.iter().enumerate().map(|(at, (_, kind))| kind.array(&column(at))).collect();
        let fields: Vec<Field> =
            self.columns.iter().map(|(name, kind)| Field::new(name, kind.data_type(), true)).collect();
        RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap()
    }

    fn value(&self, row: &[Option<i64>], name: &str) -> Option<Option<i64>> {
        self.columns.iter().position(|(own, _)| own == name).map(|at| row[at])
    }
}

/// A column, and what rows have that lack it.
type Column = (String, Kind, Option<i64>);

/// What a version shows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shown {
    pub columns: Vec<Column>,
    pub rows: Vec<Vec<Option<i64>>>,
}

/// A table of the model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EvolvingTable {
    pub keyed: bool,
    pub sorted: bool,
    /// Not of a keyed table: rows in memory are numbered when it suits the store.
    pub versions: BTreeMap<u64, Shown>,
    pub now: Shown,
    next_version: u64,
}

/// One operation.
#[derive(Clone, Debug)]
pub enum EvolveOp {
    Create(String, Frame, bool, bool),
    Write(String, Frame),
    Append(String, Frame, bool),
    Upsert(String, Frame, bool),
    Alter(String, Change),
    /// A change of columns, then rows, in one transaction.
    Both(String, Change, Frame),
    /// A column is set, in all rows or those whose key leaves a rest.
    Update(String, String, Set, Option<i64>),
    Delete(String, i64),
    Restore(String, u64),
    DeleteVersion(String, u64),
}

/// What a column is set to.
#[derive(Clone, Debug)]
pub enum Set {
    /// The same in all rows.
    To(Option<i64>),
    /// Another column of numbers, and a number more.
    Plus(String, i64),
}

/// A change of columns.
#[derive(Clone, Debug)]
pub enum Change {
    Add(Vec<Column>),
    Drop(Vec<String>),
    Rename(Vec<(String, String)>),
    Widen(String, Kind),
}

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

/// A frame with the column `k`, whose numbers are distinct, and some others.
fn frame(rng: &mut fastrand::Rng, columns: Vec<(String, Kind)>) -> Frame {
    let mut keys: Vec<i64> = (0..40).collect();
    rng.shuffle(&mut keys);
    let rows = keys.into_iter().take(rng.usize(..9)).map(|key| {
        let value = |(_, kind): &(String, Kind)| (*kind != Kind::Null && rng.u8(..5) > 0).then(|| rng.i64(0..9));
        [Some(key)].into_iter().chain(columns[1..].iter().map(value)).collect()
    });
    Frame { rows: rows.collect(), columns }
}

fn fresh(rng: &mut fastrand::Rng) -> Vec<(String, Kind)> {
    let key = ("k".to_owned(), Kind::Wide);
    let kind = |rng: &mut fastrand::Rng| if rng.u8(..5) == 0 { Kind::Null } else { Kind::TYPED[rng.usize(..4)] };
    let some = NAMES.iter().filter(|_| rng.bool()).collect::<Vec<_>>();
    [key].into_iter().chain(some.into_iter().map(|name| ((*name).to_owned(), kind(rng)))).collect()
}

/// Chooses a random operation.
pub fn draw(rng: &mut fastrand::Rng, tables: &BTreeMap<String, EvolvingTable>) -> EvolveOp {
    let path = format!("e/{}", ["a", "b", "k"][rng.usize(..3)]);
    let Some(table) = tables.get(&path) else {
        let columns = fresh(rng);
        let keyed = path == "e/k";
        return EvolveOp::Create(path, frame(rng, columns), keyed, !keyed && rng.bool());
    };
    // The columns of a frame: mostly the table's, some missing, some of other kinds, some new.
    let mut columns: Vec<(String, Kind)> =
        table.now.columns.iter().map(|(name, kind, _)| (name.clone(), *kind)).collect();
    let evolves = rng.bool();
    for at in (1..columns.len()).rev() {
        match rng.u8(..12) {
            0 if evolves => drop(columns.remove(at)),
            1 => columns[at].1 = Kind::TYPED[rng.usize(..4)],
            2 => columns[at].1 = Kind::Null,
            _ if columns[at].1 == Kind::Null && rng.bool() => columns[at].1 = Kind::TYPED[rng.usize(..4)],
            _ => {}
        }
    }
    let new = NAMES[rng.usize(..5)];
    if evolves && rng.bool() && columns.iter().all(|(name, _)| name != new) {
        let gone = table.now.columns.iter().any(|(name, ..)| name == new);
        if !gone {
            columns.push((new.to_owned(), Kind::TYPED[rng.usize(..4)]));
        }
    }
    let rows = frame(rng, columns);
    match rng.u8(..16) {
        0 => {
            let columns = fresh(rng);
            EvolveOp::Write(path, frame(rng, columns))
        }
        1..6 if table.keyed => EvolveOp::Upsert(path, rows, evolves),
        1..6 => EvolveOp::Append(path, rows, evolves),
        6..11 => EvolveOp::Alter(path, change(rng, table)),
        11 => {
            let change = change(rng, table);
            let mut after = table.now.clone();
            let columns = match change_of(&mut after, &change) {
                true => after.columns,
                false => table.now.columns.clone(),
            };
            let columns = columns.into_iter().map(|(name, kind, _)| (name, kind)).collect();
            EvolveOp::Both(path, change, frame(rng, columns))
        }
        12 | 13 if table.now.columns.len() > 1 => {
            let columns = &table.now.columns[1..];
            let (name, kind, _) = &columns[rng.usize(..columns.len())];
            let numbers = table.now.columns.iter().filter(|(_, kind, _)| kind.is_number()).collect::<Vec<_>>();
            let set = match kind.is_number() && !numbers.is_empty() && rng.bool() {
                true => Set::Plus(numbers[rng.usize(..numbers.len())].0.clone(), rng.i64(0..3)),
                false => Set::To((*kind != Kind::Null && rng.u8(..4) > 0).then(|| rng.i64(0..9))),
            };
            EvolveOp::Update(path, name.clone(), set, (rng.u8(..4) > 0).then(|| rng.i64(0..5)))
        }
        13 => EvolveOp::Delete(path, rng.i64(0..5)),
        _ if table.keyed => EvolveOp::Delete(path, rng.i64(0..5)),
        14 => EvolveOp::Restore(path, *table.versions.keys().nth(rng.usize(..table.versions.len())).unwrap()),
        _ => EvolveOp::DeleteVersion(path, *table.versions.keys().nth(rng.usize(..table.versions.len())).unwrap()),
    }
}

fn change(rng: &mut fastrand::Rng, table: &EvolvingTable) -> Change {
    let columns = &table.now.columns;
    // Only an order keeps its column from being changed.
    let first = usize::from(!table.keyed && !table.sorted);
    if columns.len() == first {
        return Change::Add(vec![("a".to_owned(), Kind::Wide, None)]);
    }
    let name = |rng: &mut fastrand::Rng| columns[rng.usize(first..columns.len())].0.clone();
    match rng.u8(..8) {
        0..3 => {
            let kind = Kind::TYPED[rng.usize(..4)];
            Change::Add(vec![(NAMES[rng.usize(..5)].to_owned(), kind, rng.bool().then(|| rng.i64(0..9)))])
        }
        3 => Change::Drop(vec![name(rng)]),
        4 => Change::Rename(vec![(name(rng), NAMES[rng.usize(..5)].to_owned())]),
        5 if columns.len() > 2 => {
            let (a, b) = (columns[1].0.clone(), columns[2].0.clone());
            Change::Rename(vec![(a.clone(), b.clone()), (b, a)])
        }
        _ => Change::Widen(name(rng), Kind::TYPED[rng.usize(..4)]),
    }
}

/// Changes the columns of what is shown; returns whether that is possible.
fn change_of(shown: &mut Shown, change: &Change) -> bool {
    let at = |shown: &Shown, name: &String| shown.columns.iter().position(|(own, ..)| own == name);
    match change {
        Change::Add(added) => {
            for column in added {
                if at(shown, &column.0).is_some() {
                    return false;
                }
                shown.columns.push(column.clone());
                shown.rows.iter_mut().for_each(|row| row.push(column.2));
            }
        }
        Change::Drop(names) => {
            for name in names {
                let Some(at) = at(shown, name).filter(|at| *at > 0) else { return false };
                shown.columns.remove(at);
                for row in &mut shown.rows {
                    row.remove(at);
                }
            }
        }
        Change::Rename(names) => {
            let places: Option<Vec<usize>> =
                names.iter().map(|(from, _)| at(shown, from).filter(|at| *at > 0)).collect();
            let Some(places) = places else { return false };
            for (at, (_, to)) in places.into_iter().zip(names) {
                shown.columns[at].0.clone_from(to);
            }
            let mut names: Vec<&String> = shown.columns.iter().map(|(name, ..)| name).collect();
            names.sort();
            return names.windows(2).all(|pair| pair[0] != pair[1]);
        }
        Change::Widen(name, kind) => {
            let Some(at) = at(shown, name).filter(|at| *at > 0) else { return false };
            let own = shown.columns[at].1;
            if own != Kind::Null && !kind.takes(own) {
                return false;
            }
            shown.columns[at].1 = *kind;
        }
    }
    true
}

/// What is shown after the rows of a frame were brought in; `None` if they do not fit.
fn brought(table: &EvolvingTable, frame: &Frame, evolves: bool) -> Option<Shown> {
    let mut shown = table.now.clone();
    for (at, (name, kind, _)) in shown.columns.iter_mut().enumerate() {
        match frame.columns.iter().find(|(came, _)| came == name) {
            None if !evolves => return None,
            None => {}
            Some((_, came)) if *kind == Kind::Null => *kind = *came,
            Some((_, came)) if at > 0 && evolves && came.takes(*kind) && *kind == Kind::Narrow => *kind = *came,
            Some((_, came)) if !kind.takes(*came) => return None,
            Some(_) => {}
        }
    }
    for (name, kind) in &frame.columns {
        if !shown.columns.iter().any(|(own, ..)| own == name) {
            if !evolves {
                return None;
            }
            shown.columns.push((name.clone(), *kind, None));
            shown.rows.iter_mut().for_each(|row| row.push(None));
        }
    }
    for row in &frame.rows {
        let full: Vec<Option<i64>> =
            shown.columns.iter().map(|(name, _, default)| frame.value(row, name).unwrap_or(*default)).collect();
        if table.keyed {
            shown.rows.retain(|own| own[0] != full[0]);
        }
        shown.rows.push(full);
    }
    if table.keyed || table.sorted {
        shown.rows.sort_by_key(|row| row[0]);
    }
    Some(shown)
}

impl EvolvingTable {
    fn becomes(&mut self, shown: Shown) {
        if !self.keyed {
            self.versions.insert(self.next_version, shown.clone());
            self.next_version += 1;
        }
        self.now = shown;
    }
}

fn plain(frame: &Frame) -> Vec<Column> {
    frame.columns.iter().map(|(name, kind)| (name.clone(), *kind, None)).collect()
}

/// Applies `op` to the model; returns whether the store must succeed.
pub fn apply(tables: &mut BTreeMap<String, EvolvingTable>, op: &EvolveOp) -> bool {
    match op {
        EvolveOp::Create(path, frame, keyed, sorted) => {
            let mut table = EvolvingTable { keyed: *keyed, sorted: *sorted, ..EvolvingTable::default() };
            table.now.columns = plain(frame);
            let shown = brought(&table, frame, false).expect("its own columns");
            table.becomes(shown);
            tables.insert(path.clone(), table);
        }
        EvolveOp::Write(path, frame) => {
            let table = tables.get_mut(path).unwrap();
            let same = table
                .now
                .columns
                .iter()
                .map(|(name, kind, _)| (name, kind))
                .eq(plain(frame).iter().map(|(name, kind, _)| (name, kind)));
            let columns = if same { table.now.columns.clone() } else { plain(frame) };
            let empty = EvolvingTable { now: Shown { columns, rows: Vec::new() }, ..table.clone() };
            let shown = brought(&empty, frame, false).expect("its own columns");
            table.becomes(shown);
        }
        EvolveOp::Append(path, frame, evolves) | EvolveOp::Upsert(path, frame, evolves) => {
            let table = tables.get_mut(path).unwrap();
            let Some(shown) = brought(table, frame, *evolves) else { return false };
            table.becomes(shown);
        }
        EvolveOp::Alter(path, change) => {
            let table = tables.get_mut(path).unwrap();
            let mut shown = table.now.clone();
            if !change_of(&mut shown, change) {
                return false;
            }
            if shown != table.now {
                table.becomes(shown);
            }
        }
        EvolveOp::Both(path, change, frame) => {
            let mut table = tables[path].clone();
            let mut shown = table.now.clone();
            if !change_of(&mut shown, change) {
                return false;
            }
            if shown != table.now {
                table.becomes(shown);
            }
            let Some(shown) = brought(&table, frame, false) else { return false };
            table.becomes(shown);
            tables.insert(path.clone(), table);
        }
        EvolveOp::Update(path, column, set, rest) => {
            let table = tables.get_mut(path).unwrap();
            let mut shown = table.now.clone();
            let place = |name: &String| shown.columns.iter().position(|(own, ..)| own == name).unwrap();
            let (at, from) = (place(column), if let Set::Plus(other, _) = set { place(other) } else { 0 });
            let mut any = false;
            for row in &mut shown.rows {
                if rest.is_none_or(|rest| row[0].is_some_and(|key| key % 5 == rest)) {
                    row[at] = match set {
                        Set::To(value) => *value,
                        Set::Plus(_, more) => row[from].map(|value| value + more),
                    };
                    any = true;
                }
            }
            if any {
                table.becomes(shown);
            }
        }
        EvolveOp::Delete(path, rest) => {
            let table = tables.get_mut(path).unwrap();
            let mut shown = table.now.clone();
            shown.rows.retain(|row| row[0].unwrap() % 5 != *rest);
            if shown != table.now {
                table.becomes(shown);
            }
        }
        EvolveOp::Restore(path, version) => {
            let table = tables.get_mut(path).unwrap();
            let shown = table.versions[version].clone();
            table.becomes(shown);
        }
        EvolveOp::DeleteVersion(path, version) => {
            let table = tables.get_mut(path).unwrap();
            if table.versions.len() == 1 {
                return false;
            }
            table.versions.remove(version);
            table.now = table.versions.values().next_back().unwrap().clone();
        }
    }
    true
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
        EvolveOp::Alter(path, change) => drop(store.table(path).alter(&alter(change), &Default::default())?),
        EvolveOp::Both(path, change, frame) => {
            let keyed = !store.table(path).order()?.key.is_empty();
            store.transact(|tx| {
                let table = tx.table(path);
                table.alter(&alter(change), &Default::default())?;
                match keyed {
                    true => table.upsert(frame.batch(), &strict).map(drop),
                    false => table.append(frame.batch(), &strict).map(drop),
                }
            })?;
        }
        EvolveOp::Update(path, column, set, rest) => {
            let table = store.table(path);
            let text = table.schema(&AsOf::Newest)?.field_with_name(column)?.data_type() == &DataType::Utf8;
            let set = match set {
                Set::To(None) => "null".to_owned(),
                Set::To(Some(value)) if text => format!("'x{value}'"),
                Set::To(Some(value)) => value.to_string(),
                Set::Plus(other, more) => format!("{other} + {more}"),
            };
            let filter = rest.map(|rest| format!("k % 5 = {rest}"));
            let set = [(column.clone(), Expression::parse(&set)?)];
            drop(table.update(&set, filter.as_deref(), &Default::default())?);
        }
        EvolveOp::Delete(path, rest) => {
            drop(store.table(path).delete(&format!("k % 5 = {rest}"), &Default::default())?);
        }
        EvolveOp::Restore(path, version) => drop(store.restore(path, &AsOf::Version(Version(*version)))?),
        EvolveOp::DeleteVersion(path, version) => {
            drop(store.delete_versions(&[(path.clone(), vec![Version(*version)])], Default::default())?);
        }
    }
    Ok(())
}

pub fn alter(change: &Change) -> Alter {
    match change {
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
    }
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
    if columns != expected_columns || rows != expected_rows {
        return Err(format!("{what}: {columns:?} {rows:?}, expected {expected_columns:?} {expected_rows:?}"));
    }
    // Filters see the columns in the same types: by statistics, and by values.
    for (at, (name, kind, _)) in shown.columns.iter().enumerate().filter(|(_, (_, kind, _))| *kind != Kind::Null) {
        let wanted = if *kind == Kind::Text { "'x4'".to_owned() } else { "4".to_owned() };
        let filter = drumlin::Filter::parse(&format!("{name} = {wanted}")).map_err(|e| e.to_string())?;
        let scan = drumlin::ScanOptions { filter: Some(filter), ..Default::default() };
        let options = ReadOptions { as_of: as_of.clone(), scan };
        let found = store.table(path).read(&options).and_then(|scan| scan.count());
        let found = found.map_err(|e| format!("{what}, {name} = {wanted}: {e}"))?;
        let expected = shown.rows.iter().filter(|row| row[at] == Some(4)).count() as u64;
        if found != expected {
            return Err(format!("{what}: {found} rows with {name} = {wanted}, expected {expected}"));
        }
    }
    Ok(())
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
