//! Rows by key, nodes with payloads, and a transaction over both.

use std::sync::Arc;

use drumlin::arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
use drumlin::arrow::datatypes::Int64Type;
use drumlin::{Options, Payload, Result, Store, TableOptions, Tables};

fn accounts(ids: &[i64], owners: &[&str], amounts: &[i64]) -> RecordBatch {
    let id = Arc::new(Int64Array::from(ids.to_vec())) as ArrayRef;
    let owner = Arc::new(StringArray::from(owners.to_vec())) as ArrayRef;
    let amount = Arc::new(Int64Array::from(amounts.to_vec())) as ArrayRef;
    RecordBatch::try_from_iter([("id", id), ("owner", owner), ("amount", amount)]).expect("columns of one length")
}

fn main() -> Result<()> {
    let store = Store::open_with("memory://", Options::default())?;
    let table = store.table("bank/accounts");
    let rows = accounts(&[1, 2], &["Ada", "Grace"], &[100, 50]);
    table.create(rows.schema(), TableOptions { key: vec!["id".into()], ..TableOptions::default() })?;
    table.insert(rows.clone(), &Default::default())?;

    // Run again if others have changed what it has read: both rows and the node change, or nothing does.
    store.transact(|tx| {
        let accounts = tx.table("bank/accounts");
        let found = accounts.get_many(&rows.project(&[0])?, &Default::default())?.rows;
        let amounts = found["amount"].as_primitive::<Int64Type>();
        let (first, second) = (amounts.value(0) - 30, amounts.value(1) + 30);
        accounts.upsert(self::accounts(&[1, 2], &["Ada", "Grace"], &[first, second]), &Default::default())?;
        tx.tree().put("bank/last", Payload::from(30))?;
        Ok::<_, drumlin::Error>(())
    })?;

    let found = table.get_many(&rows.project(&[0])?, &Default::default())?;
    let amounts: Vec<i64> = found.rows["amount"].as_primitive::<Int64Type>().values().to_vec();
    println!("{amounts:?} after a transfer of {:?}", store.tree().get("bank/last")?);
    assert_eq!(amounts, [70, 80]);
    store.close()
}
