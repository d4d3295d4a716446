//! Look-ups by columns that need not be a key: in the order that was asked, with and without an index.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::Int64Type;
use drumlin::base::Version;
use drumlin::store::{AsOf, CheckpointOptions, IndexOptions, LookupOptions, TableOptions};
use drumlin::{ErrorKind, Expression, Store, Tables};

use crate::seeds;

fn column(values: Vec<Option<i64>>) -> ArrayRef {
    Arc::new(Int64Array::from(values))
}

fn rows(values: &[(i64, Option<i64>, i64)]) -> RecordBatch {
    let id = column(values.iter().map(|(id, ..)| Some(*id)).collect());
    let u = column(values.iter().map(|(_, u, _)| *u).collect());
    let w = column(values.iter().map(|(.., w)| Some(*w)).collect());
    RecordBatch::try_from_iter_with_nullable([("id", id, false), ("u", u, true), ("w", w, true)]).unwrap()
}

fn asked(values: Vec<Option<i64>>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable([("u", column(values), true)]).unwrap()
}

/// What look-ups by `u` find equals what a map says, whatever table it is, and wherever its rows lie.
fn equal_a_map(seed: u64) {
    let mut rng = fastrand::Rng::with_seed(seed);
    let store = Store::memory().unwrap();
    let table = store.table("t");
    let keyed = rng.bool();
    let key = if keyed { vec!["id".to_owned()] } else { Vec::new() };
    table.create(rows(&[]).schema(), TableOptions { key, ..Default::default() }).unwrap();
    if rng.bool() {
        let unique = IndexOptions { unique: true, ..IndexOptions::default() };
        table.create_index("u", &[Expression::parse("u").unwrap()], &unique).unwrap();
    }
    let mut known: BTreeMap<i64, (i64, i64)> = BTreeMap::new();
    for step in 0..8_i64 {
        let some: Vec<(i64, Option<i64>, i64)> = (0..rng.i64(1..40))
            .map(|at| (step * 100 + at, (rng.u8(..5) > 0).then_some(step * 1000 + at * 7), rng.i64(0..9)))
            .collect();
        match keyed && rng.bool() {
            true => table.upsert(rows(&some), &Default::default()).map(drop).unwrap(),
            false => table.append(rows(&some), &Default::default()).map(drop).unwrap(),
        }
        known.extend(some.iter().filter_map(|(id, u, w)| Some(((*u)?, (*id, *w)))));
        if rng.u8(..3) == 0 {
            store.checkpoint(&CheckpointOptions { index_rows_min: 1, ..Default::default() }).unwrap();
        }
        let values: Vec<Option<i64>> = (0..rng.usize(0..30))
            .map(|_| match (rng.u8(..6), known.keys().nth(rng.usize(0..known.len().max(1)))) {
                (0, _) | (_, None) => None,
                (1, _) => Some(rng.i64(-5..9000) * 11 + 1),
                (_, Some(there)) => Some(*there),
            })
            .collect();
        let found = table.get_many_by(&["u".into()], &asked(values.clone()), &Default::default()).unwrap();
        let (ids, w) = (found.rows["id"].as_primitive::<Int64Type>(), found.rows["w"].as_primitive::<Int64Type>());
        assert_eq!(found.rows["u"].as_ref(), asked(values.clone())["u"].as_ref());
        for (at, value) in values.iter().enumerate() {
            let there = value.and_then(|value| known.get(&value));
            let own = found.found.value(at).then(|| (ids.value(at), w.value(at)));
            assert_eq!(own.as_ref(), there, "seed {seed}, {value:?}");
            assert_eq!(ids.is_valid(at), there.is_some());
        }
        let some = LookupOptions { columns: Some(vec!["w".into()]), ..LookupOptions::default() };
        let found = table.get_many_by(&["u".into()], &asked(values), &some).unwrap();
        assert_eq!(found.rows.num_columns(), 1);
    }
}

#[test]
fn look_ups_by_a_column_equal_a_map() {
    seeds::each(0..20, 10, equal_a_map);
}

#[test]
fn what_cannot_be_looked_up_is_refused() {
    let store = Store::memory().unwrap();
    let table = store.table("t");
    table.write(rows(&[(1, Some(1), 5), (2, Some(1), 6), (3, Some(3), 5)]), &Default::default()).unwrap();
    let by = |on: &[&str], values: RecordBatch| {
        table.get_many_by(&on.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>(), &values, &Default::default())
    };
    let error = by(&["u"], asked(vec![Some(1)])).unwrap_err();
    assert!(error.message().contains("'t'") && error.message().contains("u = 1"), "{error}");
    // What is not asked for does not matter, and two columns tell them apart.
    assert!(by(&["u"], asked(vec![Some(3)])).unwrap().found.value(0));
    let both = rows(&[(0, Some(1), 6), (0, Some(1), 5), (0, Some(3), 6)]).project(&[1, 2]).unwrap();
    let found = by(&["u", "w"], both).unwrap();
    assert_eq!(found.found.iter().collect::<Vec<_>>(), [Some(true), Some(true), Some(false)]);
    assert_eq!(found.rows["id"].as_primitive::<Int64Type>().values()[..2], [2, 1]);
    assert!(by(&["nowhere"], asked(vec![Some(1)])).unwrap_err().message().contains("'nowhere' does not exist"));
    assert_eq!(by(&[], asked(vec![Some(1)])).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(by(&["w"], asked(vec![Some(1)])).unwrap_err().kind(), ErrorKind::SchemaMismatch);
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["x"]));
    let texts = RecordBatch::try_from_iter([("u", texts)]).unwrap();
    assert_eq!(by(&["u"], texts).unwrap_err().kind(), ErrorKind::SchemaMismatch);
    let narrow: ArrayRef = Arc::new(Int32Array::from(vec![3]));
    assert!(by(&["u"], RecordBatch::try_from_iter([("u", narrow)]).unwrap()).unwrap().found.value(0));
    let floats: ArrayRef = Arc::new(Float64Array::from(vec![1.5]));
    let floats = RecordBatch::try_from_iter([("f", floats)]).unwrap();
    store.write("f", floats.clone(), &Default::default()).unwrap();
    let error = store.table("f").get_many_by(&["f".into()], &floats, &Default::default()).unwrap_err();
    assert!(error.message().contains("'f' of type double cannot be looked up"), "{error}");
    assert_eq!(
        store.table("none").get_many_by(&["u".into()], &asked(vec![]), &Default::default()).unwrap_err().kind(),
        ErrorKind::NotFound
    );
}

#[test]
fn older_versions_and_transactions_are_looked_up() {
    let store = Store::memory().unwrap();
    let table = store.table("t");
    table.write(rows(&[(1, Some(1), 5)]), &Default::default()).unwrap();
    table.update(&[("u".into(), Expression::parse("u + 1").unwrap())], None, &Default::default()).unwrap();
    let found = |as_of: AsOf, value: i64| {
        let options = LookupOptions { as_of, ..LookupOptions::default() };
        table.get_many_by(&["u".into()], &asked(vec![Some(value)]), &options).unwrap().found.value(0)
    };
    assert_eq!([found(AsOf::Newest, 1), found(AsOf::Newest, 2)], [false, true]);
    assert_eq!([found(AsOf::Version(Version(0)), 1), found(AsOf::Version(Version(0)), 2)], [true, false]);
    // A transaction sees its own rows, and depends on what it has seen.
    let transaction = store.transaction().unwrap();
    transaction.append("t", rows(&[(2, Some(9), 5)]), &Default::default()).unwrap();
    let own = transaction.table("t").get_many_by(&["u".into()], &asked(vec![Some(9)]), &Default::default()).unwrap();
    assert!(own.found.value(0));
    table.append(rows(&[(3, Some(4), 5)]), &Default::default()).unwrap();
    assert_eq!(transaction.commit().unwrap_err().kind(), ErrorKind::Conflict);
}
