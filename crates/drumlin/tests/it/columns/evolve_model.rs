//! Tables whose columns and constraints change: a model that holds every version as names, kinds and numbers, and operations on
//! it. The store does them, and is compared with it, in evolve_run.rs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{Field, Schema};

use super::kinds::Kind;

/// A frame.
#[derive(Clone, PartialEq)]
pub struct Frame {
    pub columns: Vec<(String, Kind)>,
    pub rows: Vec<Vec<Option<i64>>>,
}

impl std::fmt::Debug for Frame {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let columns: Vec<String> = self.columns.iter().map(|(name, kind)| format!("{name} {kind:?}")).collect();
        let value = |value: &Option<i64>| value.map_or_else(|| "_".to_owned(), |value| value.to_string());
        let rows: Vec<String> =
            self.rows.iter().map(|row| row.iter().map(value).collect::<Vec<_>>().join(" ")).collect();
        write!(f, "[{}: {}]", columns.join(", "), rows.join(", "))
    }
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
pub type Column = (String, Kind, Option<i64>);

/// What a version shows. Its first column is the one that it is ordered by, if it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shown {
    pub columns: Vec<Column>,
    pub rows: Vec<Vec<Option<i64>>>,
    /// Columns that have a least value, by the names of the checks.
    pub checks: BTreeMap<String, (String, i64)>,
    /// Columns that take no nulls.
    pub not_null: BTreeSet<String>,
    /// Whether a default was set apart from a new column.
    pub defaults: bool,
    /// The column with the times at which rows expire, if they do.
    pub ttl: Option<String>,
}

impl Shown {
    pub fn place(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|(own, ..)| own == name)
    }

    /// Whether the columns that are constrained are there, and the rows keep the constraints.
    pub fn is_valid(&self) -> bool {
        let values = |name: &str| self.place(name).map(|at| self.rows.iter().map(move |row| row[at]));
        let keeps =
            |name: &str, holds: &dyn Fn(Option<i64>) -> bool| values(name).is_some_and(|mut all| all.all(holds));
        self.checks.values().all(|(name, least)| keeps(name, &|value| value.is_none_or(|value| value >= *least)))
            && self.not_null.iter().all(|name| keeps(name, &|value| value.is_some()))
            && self.ttl.as_ref().is_none_or(|name| self.place(name).is_some_and(|at| self.columns[at].1 == Kind::Time))
    }

    /// What a frame that replaces all rows is brought into. What a column was added with stays as long as its name and type do.
    pub fn emptied_for(&self, frame: &Frame) -> Self {
        let own = |name: &String, kind: Kind| self.columns.iter().find(|own| own.0 == *name && own.1 == kind);
        let columns = frame.columns.iter().map(|(name, kind)| {
            let default = own(name, *kind).and_then(|own| own.2);
            (name.clone(), *kind, default)
        });
        Self { columns: columns.collect(), rows: Vec::new(), ..self.clone() }
    }

    pub fn is_constrained(&self) -> bool {
        self.defaults || !self.checks.is_empty() || !self.not_null.is_empty() || self.ttl.is_some()
    }
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
    /// A least value of a column.
    Check(String, String, i64),
    NotNull(String),
    Default(String, i64),
    /// The names of checks and of columns that take no nulls.
    Release(Vec<String>, Vec<String>),
    /// The column with the times at which rows expire, or none.
    Ttl(Option<String>),
}

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

/// A frame whose first column has distinct numbers, with some others.
fn frame(rng: &mut fastrand::Rng, columns: Vec<(String, Kind)>) -> Frame {
    let mut keys: Vec<i64> = (0..40).collect();
    rng.shuffle(&mut keys);
    let rows = keys.into_iter().take(rng.usize(..9)).map(|key| {
        let value = |(_, kind): &(String, Kind)| (*kind != Kind::Null && rng.u8(..5) > 0).then(|| rng.i64(0..9));
        [Some(key)].into_iter().chain(columns[1..].iter().map(value)).collect()
    });
    Frame { rows: rows.collect(), columns }
}

pub fn fresh(rng: &mut fastrand::Rng, key: &str) -> Vec<(String, Kind)> {
    let first = (key.to_owned(), Kind::Wide);
    let kind = |rng: &mut fastrand::Rng| if rng.u8(..5) == 0 { Kind::Null } else { Kind::TYPED[rng.usize(..4)] };
    let some = NAMES.iter().filter(|name| rng.bool() && **name != key).collect::<Vec<_>>();
    [first].into_iter().chain(some.into_iter().map(|name| ((*name).to_owned(), kind(rng)))).collect()
}

/// Chooses a random operation.
pub fn draw(rng: &mut fastrand::Rng, tables: &BTreeMap<String, EvolvingTable>) -> EvolveOp {
    let path = format!("e/{}", ["a", "b", "k"][rng.usize(..3)]);
    let Some(table) = tables.get(&path) else {
        let columns = fresh(rng, "k");
        let keyed = path == "e/k";
        return EvolveOp::Create(path, frame(rng, columns), keyed, !keyed && rng.bool());
    };
    let evolves = rng.bool();
    let columns = near(rng, &table.now, evolves);
    let rows = frame(rng, columns);
    match rng.u8(..16) {
        0 => {
            // What constraints make of other columns is for tests of its own.
            let columns = match table.now.is_constrained() {
                true => plain_columns(&table.now),
                false => fresh(rng, &table.now.columns[0].0),
            };
            EvolveOp::Write(path, frame(rng, columns))
        }
        1..6 if table.keyed => EvolveOp::Upsert(path, rows, evolves),
        1..6 => EvolveOp::Append(path, rows, evolves),
        6..11 => EvolveOp::Alter(path, change(rng, &table.now, table.keyed || table.sorted)),
        11 => {
            let change = change(rng, &table.now, table.keyed || table.sorted);
            let mut after = table.now.clone();
            if !change_of(&mut after, &change) {
                after = table.now.clone();
            }
            let columns = plain_columns(&after);
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

/// The columns of a frame: mostly those that are shown, some missing, some of other kinds, some new.
pub fn near(rng: &mut fastrand::Rng, now: &Shown, evolves: bool) -> Vec<(String, Kind)> {
    let mut columns = plain_columns(now);
    for at in (1..columns.len()).rev() {
        match rng.u8(..12) {
            0 => drop(columns.remove(at)),
            1 => columns[at].1 = Kind::TYPED[rng.usize(..4)],
            2 => columns[at].1 = Kind::Null,
            _ if columns[at].1 == Kind::Null && rng.bool() => columns[at].1 = Kind::TYPED[rng.usize(..4)],
            _ => {}
        }
    }
    let new = NAMES[rng.usize(..5)];
    if evolves && rng.bool() && columns.iter().all(|(name, _)| name != new) {
        let gone = now.columns.iter().any(|(name, ..)| name == new);
        if !gone {
            columns.push((new.to_owned(), Kind::TYPED[rng.usize(..4)]));
        }
    }
    columns
}

/// Chooses a random change of what is shown of a table, which may have an order or a key.
pub fn change(rng: &mut fastrand::Rng, now: &Shown, ordered: bool) -> Change {
    let columns = &now.columns;
    // Only an order keeps its column from being changed.
    let first = usize::from(!ordered);
    if columns.len() == first {
        return Change::Add(vec![("a".to_owned(), Kind::Wide, None)]);
    }
    let name = |rng: &mut fastrand::Rng| columns[rng.usize(first..columns.len())].0.clone();
    // Columns without a type take any value, and no constraint.
    let of = |wanted: fn(Kind) -> bool| -> Vec<String> {
        columns[1..].iter().filter(|(_, kind, _)| wanted(*kind)).map(|(name, ..)| name.clone()).collect()
    };
    let (typed, numbers) = (of(|kind| kind != Kind::Null), of(Kind::is_number));
    let one_of = |rng: &mut fastrand::Rng, names: &[String]| names[rng.usize(..names.len())].clone();
    match rng.u8(..13) {
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
        6 => Change::Rename(vec![(columns[0].0.clone(), ["k", "q"][rng.usize(..2)].to_owned())]),
        7 if !typed.is_empty() => Change::NotNull(one_of(rng, &typed)),
        8 if !typed.is_empty() => Change::Default(one_of(rng, &typed), rng.i64(0..9)),
        9 | 10 if now.is_constrained() => {
            let (checks, not_null) = (now.checks.keys(), now.not_null.iter());
            Change::Release(checks.filter(|_| rng.bool()).cloned().collect(), not_null.cloned().collect())
        }
        9 | 10 if !numbers.is_empty() => {
            Change::Check(["least", "floor"][rng.usize(..2)].to_owned(), one_of(rng, &numbers), rng.i64(0..3))
        }
        11 => match columns[1..].iter().find(|(_, kind, _)| *kind == Kind::Time) {
            Some((name, ..)) => Change::Ttl((now.ttl.is_none() || rng.bool()).then(|| name.clone())),
            None if rng.bool() => Change::Ttl(None),
            None => Change::Add(vec![("t".to_owned(), Kind::Time, rng.bool().then(|| rng.i64(0..9)))]),
        },
        _ => Change::Widen(name(rng), Kind::TYPED[rng.usize(..4)]),
    }
}

/// Changes the columns of what is shown; returns whether that is possible.
pub fn change_of(shown: &mut Shown, change: &Change) -> bool {
    let is_checked = |shown: &Shown, name: &String| shown.checks.values().any(|(own, _)| own == name);
    match change {
        Change::Add(added) => {
            for column in added {
                if shown.place(&column.0).is_some() {
                    return false;
                }
                shown.columns.push(column.clone());
                shown.rows.iter_mut().for_each(|row| row.push(column.2));
            }
        }
        Change::Drop(names) => {
            for name in names {
                let free = |at: &usize| *at > 0 && !is_checked(shown, name) && shown.ttl.as_ref() != Some(name);
                let at = shown.place(name).filter(free);
                let Some(at) = at else { return false };
                shown.columns.remove(at);
                shown.not_null.remove(name);
                for row in &mut shown.rows {
                    row.remove(at);
                }
            }
        }
        Change::Rename(names) => {
            let places: Option<Vec<usize>> = names.iter().map(|(from, _)| shown.place(from)).collect();
            let Some(places) = places.filter(|_| !names.iter().any(|(from, _)| is_checked(shown, from))) else {
                return false;
            };
            let not_null: Vec<bool> = names.iter().map(|(from, _)| shown.not_null.remove(from)).collect();
            for ((at, (_, to)), not_null) in places.into_iter().zip(names).zip(not_null) {
                shown.columns[at].0.clone_from(to);
                shown.not_null.extend(not_null.then(|| to.clone()));
            }
            if let Some((_, to)) = names.iter().find(|(from, _)| shown.ttl.as_ref() == Some(from)) {
                shown.ttl = Some(to.clone());
            }
            let mut names: Vec<&String> = shown.columns.iter().map(|(name, ..)| name).collect();
            names.sort();
            return names.windows(2).all(|pair| pair[0] != pair[1]);
        }
        Change::Widen(name, kind) => {
            let Some(at) = shown.place(name).filter(|at| *at > 0) else { return false };
            let own = shown.columns[at].1;
            if own != Kind::Null && !kind.takes(own) {
                return false;
            }
            shown.columns[at].1 = *kind;
        }
        Change::Check(check, name, least) => {
            if shown.place(name).is_none() {
                return false;
            }
            if shown.checks.insert(check.clone(), (name.clone(), *least)).is_some() {
                return false;
            }
            return shown.is_valid();
        }
        Change::NotNull(name) => {
            if shown.place(name).is_none() {
                return false;
            }
            shown.not_null.insert(name.clone());
            return shown.is_valid();
        }
        Change::Default(name, value) => {
            let Some(at) = shown.place(name) else { return false };
            shown.columns[at].2 = Some(*value);
            shown.defaults = true;
        }
        Change::Release(checks, not_null) => {
            checks.iter().for_each(|name| drop(shown.checks.remove(name)));
            shown.not_null.retain(|name| !not_null.contains(name));
        }
        Change::Ttl(column) => {
            if column.is_none() && shown.ttl.is_none() {
                return false;
            }
            shown.ttl.clone_from(column);
            return shown.is_valid();
        }
    }
    true
}

/// What is shown after the rows of a frame were brought in; `None` if they do not fit.
pub fn brought(now: &Shown, keyed: bool, sorted: bool, frame: &Frame, evolves: bool) -> Option<Shown> {
    let lacks = |(name, ..): &Column| !frame.columns.iter().any(|(came, _)| came == name);
    if !evolves && now.columns.iter().any(lacks) {
        return None;
    }
    filled(now, keyed, sorted, frame, evolves)
}

/// The same; what the frame lacks is the default.
pub fn filled(now: &Shown, keyed: bool, sorted: bool, frame: &Frame, evolves: bool) -> Option<Shown> {
    let lacks = |(name, _, default): &Column| {
        let is_there = frame.columns.iter().any(|(came, _)| came == name);
        !is_there && now.not_null.contains(name) && default.is_none()
    };
    // Its columns decide, whether it has rows or not.
    if now.columns.iter().any(lacks) {
        return None;
    }
    brought_as(now, keyed, sorted, frame, evolves, |_, (_, _, default), _| *default)
}

/// The same of an upsert: rows that are there keep what they have in columns that the frame lacks; in others, these have their
/// default.
pub fn upserted(now: &Shown, frame: &Frame, evolves: bool) -> Option<Shown> {
    let kept = |key: &[Option<i64>], (name, _, default): &Column, shown: &Shown| {
        let there = shown.rows.iter().find(|row| row[0] == key[0]);
        there.map_or(*default, |row| row[shown.place(name).expect("its own")])
    };
    brought_as(now, true, true, frame, evolves, kept)
}

/// The same; `lacking` says what a row has in a column that the frame lacks.
fn brought_as(
    now: &Shown,
    keyed: bool,
    sorted: bool,
    frame: &Frame,
    evolves: bool,
    lacking: impl Fn(&[Option<i64>], &Column, &Shown) -> Option<i64>,
) -> Option<Shown> {
    let mut shown = now.clone();
    for (at, (name, kind, _)) in shown.columns.iter_mut().enumerate() {
        match frame.columns.iter().find(|(came, _)| came == name) {
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
        let value = |column: &Column| frame.value(row, &column.0).unwrap_or_else(|| lacking(row, column, &shown));
        let full: Vec<Option<i64>> = shown.columns.iter().map(value).collect();
        if keyed {
            shown.rows.retain(|own| own[0] != full[0]);
        }
        shown.rows.push(full);
    }
    if keyed || sorted {
        shown.rows.sort_by_key(|row| row[0]);
    }
    shown.is_valid().then_some(shown)
}

impl EvolvingTable {
    fn brought(&self, frame: &Frame, evolves: bool) -> Option<Shown> {
        brought(&self.now, self.keyed, self.sorted, frame, evolves)
    }

    fn becomes(&mut self, shown: Shown) {
        if !self.keyed {
            self.versions.insert(self.next_version, shown.clone());
            self.next_version += 1;
        }
        self.now = shown;
    }
}

pub fn plain_columns(shown: &Shown) -> Vec<(String, Kind)> {
    shown.columns.iter().map(|(name, kind, _)| (name.clone(), *kind)).collect()
}

pub fn plain(frame: &Frame) -> Vec<Column> {
    frame.columns.iter().map(|(name, kind)| (name.clone(), *kind, None)).collect()
}

/// Applies `op` to the model; returns whether the store must succeed.
pub fn apply(tables: &mut BTreeMap<String, EvolvingTable>, op: &EvolveOp) -> bool {
    match op {
        EvolveOp::Create(path, frame, keyed, sorted) => {
            let mut table = EvolvingTable { keyed: *keyed, sorted: *sorted, ..EvolvingTable::default() };
            table.now.columns = plain(frame);
            let shown = table.brought(frame, false).expect("its own columns");
            table.becomes(shown);
            tables.insert(path.clone(), table);
        }
        EvolveOp::Write(path, frame) => {
            let table = tables.get_mut(path).unwrap();
            let now = table.now.emptied_for(frame);
            let Some(shown) = brought(&now, table.keyed, table.sorted, frame, false) else { return false };
            table.becomes(shown);
        }
        EvolveOp::Append(path, frame, evolves) => {
            let table = tables.get_mut(path).unwrap();
            let Some(shown) = table.brought(frame, *evolves) else { return false };
            table.becomes(shown);
        }
        EvolveOp::Upsert(path, frame, evolves) => {
            let table = tables.get_mut(path).unwrap();
            let Some(shown) = upserted(&table.now, frame, *evolves) else { return false };
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
            let Some(shown) = table.brought(frame, false) else { return false };
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
                if !shown.is_valid() {
                    return false;
                }
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
