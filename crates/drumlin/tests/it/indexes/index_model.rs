//! Random operations on a table with indexes: after each, what filters find in every version is what they find in rows that were read
//! without a filter, which asks no index.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int32Array, RecordBatch, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Float64Type, Int64Type};
use drumlin::base::{ManualClock, Timestamp, Version};
use drumlin::catalog::Existing;
use drumlin::storage::SimDisk;
use drumlin::store::{
    AsOf, CheckpointOptions, DatasetOptions, IndexOptions, Missing, Options, ReadOptions, VerifyOptions,
};
use drumlin::table::{Alter, Fill, NewColumn, PlanOptions, ScanOptions, SchemaMode};
use drumlin::{Error, ErrorKind, Expression, Filter, Merge, Store, Tables, WhenMatched, WhenNotMatched};

use crate::seeds;
use crate::support::{Checked, open_as, opener};

const PATH: &str = "t";

/// A value of a row.
#[derive(Clone, Debug, PartialEq)]
enum Value {
    Null,
    Int(i64),
    Text(String),
    Float(f64),
}

type Row = BTreeMap<String, Value>;

/// A filter that the model understands.
#[derive(Clone, Debug)]
enum Predicate {
    Compare(String, &'static str, Value),
    In(String, Vec<Value>),
    IsNull(String, bool),
    Prefix(String, String),
    /// The rest of a division.
    Rest(String, i64, i64),
    Lower(String, String),
    Not(Box<Predicate>),
    And(Vec<Predicate>),
    Or(Vec<Predicate>),
}

impl Predicate {
    fn text(&self) -> String {
        let literal = |value: &Value| match value {
            Value::Null => "null".to_owned(),
            Value::Int(n) => n.to_string(),
            Value::Text(text) => format!("'{text}'"),
            Value::Float(x) if !x.is_finite() => format!("double '{x}'"),
            Value::Float(x) => format!("{x:?}"),
        };
        let all = |parts: &[Predicate], word: &str| {
            parts.iter().map(|part| format!("({})", part.text())).collect::<Vec<_>>().join(word)
        };
        match self {
            Self::Compare(column, op, value) => format!("{column} {op} {}", literal(value)),
            Self::In(column, values) => {
                format!("{column} in ({})", values.iter().map(literal).collect::<Vec<_>>().join(", "))
            }
            Self::IsNull(column, negated) => format!("{column} is {}null", if *negated { "not " } else { "" }),
            Self::Prefix(column, prefix) => format!("{column} like '{prefix}%'"),
            Self::Rest(column, by, rest) => format!("{column} % {by} = {rest}"),
            Self::Lower(column, text) => format!("lower({column}) = '{text}'"),
            Self::Not(inner) => format!("not ({})", inner.text()),
            Self::And(parts) => all(parts, " and "),
            Self::Or(parts) => all(parts, " or "),
        }
    }

    /// By SQL's three truth values.
    fn truth(&self, row: &Row) -> Option<bool> {
        match self {
            Self::Compare(column, op, value) => {
                let order = order(&row[column], value)?;
                Some(match *op {
                    "=" => order.is_eq(),
                    "<" => order.is_lt(),
                    ">=" => order.is_ge(),
                    _ => order.is_ne(),
                })
            }
            Self::In(column, values) => {
                let found: Vec<Option<bool>> =
                    values.iter().map(|value| order(&row[column], value).map(std::cmp::Ordering::is_eq)).collect();
                any(&found)
            }
            Self::IsNull(column, negated) => Some((row[column] == Value::Null) != *negated),
            Self::Prefix(column, prefix) => text_of(row, column).map(|text| text.starts_with(prefix.as_str())),
            Self::Rest(column, by, rest) => match &row[column] {
                Value::Int(n) => Some(n % by == *rest),
                _ => None,
            },
            Self::Lower(column, wanted) => text_of(row, column).map(|text| text.to_lowercase() == *wanted),
            Self::Not(inner) => inner.truth(row).map(|truth| !truth),
            Self::And(parts) => {
                let parts: Vec<Option<bool>> = parts.iter().map(|part| part.truth(row).map(|truth| !truth)).collect();
                any(&parts).map(|truth| !truth)
            }
            Self::Or(parts) => any(&parts.iter().map(|part| part.truth(row)).collect::<Vec<_>>()),
        }
    }
}

fn any(truths: &[Option<bool>]) -> Option<bool> {
    match () {
        () if truths.contains(&Some(true)) => Some(true),
        () if truths.contains(&None) => None,
        () => Some(false),
    }
}

fn text_of<'r>(row: &'r Row, column: &str) -> Option<&'r str> {
    match &row[column] {
        Value::Text(text) => Some(text),
        _ => None,
    }
}

fn order(a: &Value, b: &Value) -> Option<std::cmp::Ordering> {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => Some(a.cmp(b)),
        (Value::Text(a), Value::Text(b)) => Some(a.cmp(b)),
        // NaN is equal to itself and greatest, and the zeros are equal.
        (Value::Float(a), Value::Float(b)) => Some(a.partial_cmp(b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))),
        _ => None,
    }
}

fn rows_of(batches: &[RecordBatch]) -> Vec<Row> {
    let value = |column: &ArrayRef, at: usize| -> Value {
        if column.is_null(at) {
            return Value::Null;
        }
        match column.data_type() {
            DataType::Int32 | DataType::Int64 => {
                Value::Int(cast(&column.slice(at, 1), &DataType::Int64).unwrap().as_primitive::<Int64Type>().value(0))
            }
            DataType::Float64 => Value::Float(column.as_primitive::<Float64Type>().value(at)),
            DataType::Utf8 => Value::Text(column.as_string::<i32>().value(at).to_owned()),
            other => panic!("{other}"),
        }
    };
    let of = |batch: &RecordBatch| -> Vec<Row> {
        let schema = batch.schema();
        let row = |at: usize| {
            let columns = schema.fields().iter().zip(batch.columns());
            columns.map(|(field, column)| (field.name().clone(), value(column, at))).collect()
        };
        (0..batch.num_rows()).map(row).collect()
    };
    batches.iter().flat_map(of).collect()
}

/// Rows that compare, NaN included.
fn shown(rows: &[Row]) -> Vec<String> {
    rows.iter().map(|row| format!("{row:?}")).collect()
}

/// A table with indexes, and what is done to it.
struct Run {
    store: Store,
    disk: SimDisk,
    clock: Arc<ManualClock>,
    seed: u64,
    rng: fastrand::Rng,
    next_id: i64,
    keyed: bool,
    /// Row groups for which indexes answered.
    answered: u64,
    snapshots: u32,
}

fn told(e: Error) -> String {
    e.to_string()
}

/// With little memory, runs are small, and many of them are merged.
fn open_model(seed: u64, disk: &SimDisk, clock: &Arc<ManualClock>) -> Result<Store, Error> {
    match seed % 2 {
        0 => opener(seed)(disk, clock, 2),
        _ => open_as(disk, clock, 2, Options { memory_bytes: 24 << 10, ..Options::default() }),
    }
}

fn options(as_of: AsOf, filter: Option<Filter>) -> ReadOptions {
    ReadOptions { as_of, filter, ..ReadOptions::default() }
}

impl Run {
    fn new(seed: u64) -> Self {
        let (disk, clock) = (SimDisk::new(), Arc::new(ManualClock::new(Timestamp(1_000_000))));
        let store = open_model(seed, &disk, &clock).unwrap();
        let rng = fastrand::Rng::with_seed(seed);
        let keyed = seed.is_multiple_of(3);
        Self { store, disk, clock, seed, rng, next_id: 0, keyed, answered: 0, snapshots: 0 }
    }

    fn table(&self) -> drumlin::Table {
        self.store.table(PATH)
    }

    /// The types of the newest version's columns.
    fn columns(&self) -> Vec<(String, DataType)> {
        let schema = self.table().schema(&AsOf::Newest).unwrap();
        schema.fields().iter().map(|field| (field.name().clone(), field.data_type().clone())).collect()
    }

    fn int(&mut self) -> i64 {
        self.rng.i64(0..12)
    }

    fn text(&mut self) -> String {
        let word = ["ab", "AB", "abc", "b", "", "Ba"][self.rng.usize(0..6)];
        match self.rng.u8(0..12) {
            // Too long for an index.
            0 => format!("{word}{}", "x".repeat(300)),
            1 => format!("{word}{}", self.rng.u8(0..4)),
            _ => word.to_owned(),
        }
    }

    fn float(&mut self) -> f64 {
        [0.0, -0.0, 1.5, -2.5, f64::NAN, f64::INFINITY][self.rng.usize(0..6)]
    }

    /// Rows of these columns, with new ids.
    fn rows(&mut self, count: usize, columns: &[(String, DataType)]) -> RecordBatch {
        let first = self.next_id;
        self.next_id += count as i64;
        let ids: Vec<i64> = (first..self.next_id).collect();
        self.rows_with(&ids, columns)
    }

    fn rows_with(&mut self, ids: &[i64], columns: &[(String, DataType)]) -> RecordBatch {
        let mut arrays: Vec<(String, ArrayRef)> = Vec::new();
        for (name, data_type) in columns {
            let null = |rng: &mut fastrand::Rng| rng.u8(0..8) == 0;
            let array: ArrayRef = match data_type {
                _ if name == "id" => Arc::new(arrow::array::Int64Array::from(ids.to_vec())),
                DataType::Int32 | DataType::Int64 => {
                    let values = ids.iter().map(|_| (!null(&mut self.rng)).then(|| self.int() as i32));
                    cast(&(Arc::new(Int32Array::from_iter(values)) as ArrayRef), data_type).unwrap()
                }
                DataType::Utf8 => {
                    let values: Vec<Option<String>> =
                        ids.iter().map(|_| (!null(&mut self.rng)).then(|| self.text())).collect();
                    Arc::new(StringArray::from(values))
                }
                _ => {
                    let values: Vec<Option<f64>> =
                        ids.iter().map(|_| (!null(&mut self.rng)).then(|| self.float())).collect();
                    Arc::new(Float64Array::from(values))
                }
            };
            arrays.push((name.clone(), array));
        }
        let nullable = |(name, array): (String, ArrayRef)| {
            let nullable = name != "id";
            (name, array, nullable)
        };
        RecordBatch::try_from_iter_with_nullable(arrays.into_iter().map(nullable)).unwrap()
    }

    fn first_columns(&self) -> Vec<(String, DataType)> {
        let column = |name: &str, data_type: DataType| (name.to_owned(), data_type);
        vec![
            column("id", DataType::Int64),
            column("n", DataType::Int32),
            column("s", DataType::Utf8),
            column("x", DataType::Float64),
        ]
    }

    fn predicate(&mut self, columns: &[(String, DataType)], depth: u32) -> Predicate {
        if depth > 0 && self.rng.u8(0..3) == 0 {
            let parts: Vec<Predicate> = (0..self.rng.usize(2..4)).map(|_| self.predicate(columns, depth - 1)).collect();
            return match self.rng.u8(0..3) {
                0 => Predicate::And(parts),
                1 => Predicate::Or(parts),
                _ => Predicate::Not(Box::new(Predicate::Or(parts))),
            };
        }
        let (name, data_type) = columns[self.rng.usize(0..columns.len())].clone();
        if self.rng.u8(0..10) == 0 {
            return Predicate::IsNull(name, self.rng.bool());
        }
        let op = ["=", "=", "=", "<", ">=", "<>"][self.rng.usize(0..6)];
        match data_type {
            DataType::Int32 | DataType::Int64 => {
                // Also numbers that a narrower type does not hold.
                let wide = self.rng.u8(0..10) == 0;
                let most = if name == "id" { self.next_id.max(1) } else { 12 };
                let value = |rng: &mut fastrand::Rng| if wide { 5_000_000_000 } else { rng.i64(0..most) };
                match self.rng.u8(0..5) {
                    0 => Predicate::In(name, (0..3).map(|_| Value::Int(value(&mut self.rng))).collect()),
                    1 => Predicate::Rest(name, 4, self.rng.i64(0..4)),
                    _ => Predicate::Compare(name, op, Value::Int(value(&mut self.rng))),
                }
            }
            DataType::Utf8 => match self.rng.u8(0..4) {
                0 => Predicate::Prefix(name, ["a", "ab", "b", "B"][self.rng.usize(0..4)].to_owned()),
                1 => Predicate::Lower(name, ["ab", "abc", "ba"][self.rng.usize(0..3)].to_owned()),
                _ => Predicate::Compare(name, op, Value::Text(self.text())),
            },
            _ => Predicate::Compare(name, op, Value::Float(self.float())),
        }
    }

    /// Whether filters find in every version what they find in all rows.
    fn check(&mut self, what: &str) -> Checked {
        let versions: Vec<Version> =
            self.table().versions().map_err(told)?.into_iter().map(|info| info.version).collect();
        let mut points = vec![AsOf::Newest];
        points.push(AsOf::Version(versions[self.rng.usize(0..versions.len())]));
        if self.snapshots > 0 {
            points.push(AsOf::Snapshot(format!("s{}", self.rng.u32(0..self.snapshots))));
        }
        for as_of in points {
            let schema = self.table().schema(&as_of).map_err(told)?;
            let columns: Vec<(String, DataType)> =
                schema.fields().iter().map(|field| (field.name().clone(), field.data_type().clone())).collect();
            let all = rows_of(&self.table().collect(&options(as_of.clone(), None)).map_err(told)?);
            for _ in 0..3 {
                let predicate = self.predicate(&columns, 2);
                let text = predicate.text();
                let filter = Filter::parse(&text).map_err(told)?;
                let found = self.table().collect(&options(as_of.clone(), Some(filter.clone())));
                let found = rows_of(&found.map_err(|e| format!("{what}: `{text}` of {as_of:?}: {e}"))?);
                let wanted: Vec<Row> = all.iter().filter(|row| predicate.truth(row) == Some(true)).cloned().collect();
                if shown(&found) != shown(&wanted) {
                    return Err(format!(
                        "after {what}, `{text}` finds {} rows of {as_of:?}, and not {}, of {}; indexes: {:?}",
                        found.len(),
                        wanted.len(),
                        all.len(),
                        self.table().indexes()
                    ));
                }
                if as_of == AsOf::Newest {
                    let data = self.store.scan(PATH, &DatasetOptions::default()).map_err(told)?;
                    let plan = data.plan(&ScanOptions { filter: Some(filter), ..ScanOptions::default() });
                    self.answered += plan.map_err(told)?.total.by_index.row_groups;
                }
            }
        }
        Ok(())
    }

    fn maybe_index(&mut self) -> Result<&'static str, Error> {
        let columns = self.columns();
        let name = format!("i{}", self.rng.u8(0..4));
        let of = |rng: &mut fastrand::Rng| columns[rng.usize(0..columns.len())].0.clone();
        let texts: Vec<String> = match self.rng.u8(0..6) {
            0 => vec![of(&mut self.rng), of(&mut self.rng)],
            1 if columns.iter().any(|(name, _)| name == "s") => vec!["lower(s)".to_owned()],
            2 if columns.iter().any(|(name, _)| name == "n") => vec!["n % 4".to_owned()],
            _ => vec![of(&mut self.rng)],
        };
        let mut values: Vec<Expression> = Vec::new();
        for text in texts {
            let value = Expression::parse(&text)?;
            if !values.contains(&value) {
                values.push(value);
            }
        }
        let condition = (self.rng.u8(0..5) == 0).then(|| Filter::parse("id % 4 = 1")).transpose()?;
        let deferred = self.rng.u8(0..3) == 0;
        let made =
            self.table().create_index(&name, &values, &IndexOptions { condition, deferred, ..Default::default() });
        match made {
            Err(e) if e.kind() == ErrorKind::AlreadyExists => match self.rng.bool() {
                true => self.table().drop_index(&name).map(|()| "drop_index"),
                false => self.table().rebuild_index(&name, &Default::default()).map(|()| "rebuild_index"),
            },
            made => made.map(|()| "create_index"),
        }
    }

    fn write(&mut self) -> Result<&'static str, Error> {
        let columns = self.columns();
        let count = self.rng.usize(1..120);
        let rows = self.rows(count, &columns);
        if self.keyed && self.rng.bool() {
            let most = self.next_id;
            let ids: std::collections::BTreeSet<i64> = (0..10).map(|_| self.rng.i64(0..most)).collect();
            let again = self.rows_with(&ids.into_iter().collect::<Vec<_>>(), &columns);
            self.table().upsert(again, &Default::default())?;
            return Ok("upsert");
        }
        self.table().append(rows, &Default::default()).map(|_| "append")
    }

    fn alter(&mut self) -> Result<&'static str, Error> {
        let columns = self.columns();
        let has = |name: &str| columns.iter().any(|(own, _)| own == name);
        let n = columns.iter().find(|(name, _)| name == "n").map(|(_, data_type)| data_type.clone());
        let alter = match self.rng.u8(0..5) {
            0 if n == Some(DataType::Int32) => Alter::Widen(vec![("n".into(), DataType::Int64)]),
            1 if has("n") && !has("m") => Alter::Rename(vec![("n".into(), "m".into())]),
            1 if has("m") && !has("n") => Alter::Rename(vec![("m".into(), "n".into())]),
            2 if has("n") && has("m") => Alter::Rename(vec![("m".into(), "n".into()), ("n".into(), "m".into())]),
            3 if has("n") => Alter::Drop(vec!["n".into()]),
            _ if !has("n") => {
                let fill =
                    if self.rng.bool() { Fill::Null } else { Fill::Default(Arc::new(Int32Array::from(vec![3]))) };
                Alter::Add(vec![NewColumn { field: Field::new("n", DataType::Int32, true), fill }])
            }
            _ => return Ok("nothing"),
        };
        self.table().alter(&alter, &Default::default()).map(|_| "alter")
    }

    fn change(&mut self) -> Result<&'static str, Error> {
        let columns = self.columns();
        let predicate = self.predicate(&columns, 1).text();
        match self.rng.u8(0..4) {
            0 => self.table().delete(&predicate, &Default::default()).map(|_| "delete"),
            1 => {
                let most = self.next_id.max(1);
                let ids: std::collections::BTreeSet<i64> = (0..20).map(|_| self.rng.i64(0..most + 3)).collect();
                let rows = self.rows_with(&ids.into_iter().collect::<Vec<_>>(), &columns);
                let merge = Merge {
                    on: vec!["id".into()],
                    matched: vec![(None, WhenMatched::UpdateAll)],
                    not_matched: vec![(None, WhenNotMatched::InsertAll)],
                    ..Merge::default()
                };
                self.next_id += 3;
                self.table().merge(rows, &merge, &Default::default()).map(|_| "merge")
            }
            _ => {
                let others: Vec<&String> = columns.iter().map(|(name, _)| name).filter(|name| *name != "id").collect();
                let name = others[self.rng.usize(0..others.len())].clone();
                let value = match columns.iter().find(|(own, _)| *own == name).unwrap().1 {
                    DataType::Utf8 => format!("'{}'", self.text()),
                    DataType::Float64 => "1.5".to_owned(),
                    _ => self.int().to_string(),
                };
                let set = [(name, Expression::parse(&value)?)];
                self.table().update(&set, Some(&predicate), &Default::default()).map(|_| "update")
            }
        }
    }

    fn upkeep(&mut self) -> Result<&'static str, Error> {
        match self.rng.u8(0..7) {
            0 => {
                let plan = PlanOptions { dead_share_min: 0.0, ..PlanOptions::default() };
                self.store.checkpoint(&CheckpointOptions { plan, index_rows_min: 1, ..Default::default() })?;
                Ok("checkpoint of dead rows")
            }
            1 => self.store.checkpoint(&Default::default()).map(|_| "checkpoint"),
            2 => self.store.reclaim(&Default::default()).map(|_| "reclaim"),
            3 => {
                let columns = self.columns();
                let predicate = Filter::parse(&self.predicate(&columns, 0).text())?;
                match self.store.purge(PATH, &predicate)?.execute(&Default::default()) {
                    Err(e) if e.kind() == ErrorKind::InvalidArgument => Ok("no purge"),
                    done => done.map(|_| "purge"),
                }
            }
            _ => {
                self.store.checkpoint(&CheckpointOptions { index_rows_min: 1, ..Default::default() })?;
                Ok("checkpoint of few rows")
            }
        }
    }

    fn versions(&mut self) -> Result<&'static str, Error> {
        let versions = self.table().versions()?;
        let one = versions[self.rng.usize(0..versions.len())].version;
        match self.rng.u8(0..7) {
            0 => self.store.restore(PATH, &AsOf::Version(one)).map(|_| "restore"),
            1 if versions.len() > 1 => {
                self.store.delete_versions(&[(PATH.into(), vec![one])], Missing::Ignore)?;
                Ok("delete_versions")
            }
            2 => {
                self.store.snapshot(&format!("s{}", self.snapshots), PATH)?;
                self.snapshots += 1;
                Ok("snapshot")
            }
            3 => {
                // The copy goes on in its place.
                self.store.copy(PATH, "copy", &AsOf::Newest, Existing::Refuse)?;
                self.store.table(PATH).drop(Missing::Refuse)?;
                self.store.relocate("copy", PATH, Existing::Refuse)?;
                self.snapshots = 0;
                for snapshot in self.store.snapshots()? {
                    self.store.drop_snapshot(&snapshot.name)?;
                }
                Ok("copy")
            }
            4 => {
                let columns = self.columns();
                let rows = self.rows(40, &columns);
                self.table().write(rows, &Default::default()).map(|_| "write")
            }
            5 => {
                let columns = self.first_columns();
                let rows = self.rows(40, &columns);
                let options = drumlin::WriteOptions { schema: SchemaMode::Evolve, ..Default::default() };
                match self.table().append(rows, &options) {
                    Err(e) if e.kind() == ErrorKind::SchemaMismatch => Ok("no evolving append"),
                    done => done.map(|_| "evolving append"),
                }
            }
            _ => {
                self.disk = self.disk.crash(self.rng.u64(..));
                self.store = open_model(self.seed, &self.disk, &self.clock)?;
                Ok("crash")
            }
        }
    }

    fn step(&mut self) -> Checked {
        let done = match self.rng.u8(0..20) {
            0..6 => self.write(),
            6..9 => self.change(),
            9..11 => self.maybe_index(),
            11..15 => self.upkeep(),
            15..18 => self.versions(),
            _ => self.alter(),
        };
        let what = match done {
            Ok(what) => what,
            // A call may be refused; then nothing has changed.
            Err(e) if matches!(e.kind(), ErrorKind::AlreadyExists | ErrorKind::SchemaMismatch) => "a refused call",
            // Columns that the table is sorted by are not set.
            Err(e) if self.seed % 3 == 1 && e.kind() == ErrorKind::InvalidArgument => "a refused call",
            Err(e) => return Err(e.to_string()),
        };
        self.check(what).map_err(|e| format!("{e} (keyed: {})", self.keyed))
    }
}

/// Random operations on a table with indexes.
pub fn run(seed: u64, steps: u32) -> Checked {
    let mut run = Run::new(seed);
    let columns = run.first_columns();
    let rows = run.rows(100, &columns);
    let key = if run.keyed { vec!["id".to_owned()] } else { Vec::new() };
    let sort = if seed % 3 == 1 { vec!["n".to_owned()] } else { Vec::new() };
    let table = drumlin::store::TableOptions { key, sort, ..Default::default() };
    run.table().create(rows.schema(), table).map_err(told)?;
    run.table().append(rows, &Default::default()).map_err(told)?;
    if seed % 2 == 1 {
        for _ in 0..10 {
            let rows = run.rows(100, &columns);
            run.table().append(rows, &Default::default()).map_err(told)?;
        }
    }
    let index = IndexOptions::default();
    run.table().create_index("n", &[Expression::parse("n").map_err(told)?], &index).map_err(told)?;
    run.table().create_index("s", &[Expression::parse("s").map_err(told)?], &index).map_err(told)?;
    for _ in 0..steps {
        run.step()?;
    }
    let verified = run.store.verify(&VerifyOptions { deep: true, ..VerifyOptions::default() }).map_err(told)?;
    if !verified.faults.is_empty() {
        return Err(format!("{:?}", verified.faults));
    }
    match run.answered {
        0 => Err("no index was asked".to_owned()),
        _ => Ok(()),
    }
}

#[test]
fn indexes_find_what_scans_find() {
    seeds::each(0..10, 6, |seed| run(seed, 50).unwrap());
}
