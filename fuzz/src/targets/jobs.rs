//! What is carried between the processes of a job, and the plan of its splits.

use std::sync::Arc;

use drumlin::store::{DatasetOptions, SplitOptions, StageOptions, check_plan};
use drumlin::{ScanOptions, Split, Stage, Task, Ticket, Token};

use crate::stores;

/// Any bytes are a split, a ticket or a token, or refused; what was decoded is encoded alike.
pub fn carried(bytes: &[u8]) {
    if let Ok(split) = Split::from_bytes(bytes) {
        assert_eq!(Split::from_bytes(&split.to_bytes().expect("what was decoded")).expect("what was encoded"), split);
    }
    if let Ok(ticket) = Ticket::from_bytes(bytes) {
        assert_eq!(
            Ticket::from_bytes(&ticket.to_bytes().expect("what was decoded")).expect("what was encoded"),
            ticket
        );
    }
    if let Ok(token) = Token::from_bytes(bytes) {
        assert_eq!(Token::from_bytes(&token.to_bytes().expect("what was decoded")).expect("what was encoded"), token);
    }
}

/// The plan of a split, whose checksum matches: it is read or refused.
pub fn plan(bytes: &[u8]) {
    let disk = stores::folder(0, 0);
    let storage = drumlin::storage::FileStorage::new(Arc::new(disk));
    let _ = check_plan(bytes, Arc::new(storage), &stores::env());
}

/// Splits, tickets and tokens of a sound store.
pub fn carried_seeds() -> Vec<Vec<u8>> {
    let disk = stores::folder(0, 0);
    let store = stores::open(&disk, 0).expect("a sound store");
    let schema = stores::rows(0, 1).schema();
    let ticket =
        Ticket::open(&store, &[("staged".to_owned(), Some(schema))], &StageOptions::default()).expect("a ticket");
    let rows = stores::rows(0, 10);
    let token =
        Stage::of(&store).write(&ticket, "staged", rows.into(), Some((1, 2)), &Task::default()).expect("a token");
    let splits = store.scan_all();
    let mut seeds = vec![ticket.to_bytes().expect("a ticket"), token.to_bytes().expect("a token")];
    seeds.extend(splits.iter().map(|split| split.to_bytes().expect("a split")));
    seeds
}

trait ScanAll {
    fn scan_all(&self) -> Vec<Split>;
}

impl ScanAll for drumlin::Store {
    fn scan_all(&self) -> Vec<Split> {
        use drumlin::Tables;
        let data = self.scan("**", &DatasetOptions::default());
        let split = |data: drumlin::Dataset| data.splits(&ScanOptions::default(), &SplitOptions::default());
        data.and_then(split).map_or_else(|_| Vec::new(), |splits| splits.splits)
    }
}

/// Plans of all tables of a sound store.
pub fn plan_seeds() -> Vec<Vec<u8>> {
    use drumlin::Tables;
    use drumlin::storage::Storage;
    let disk = stores::folder(0, 0);
    let store = stores::open(&disk, 0).expect("a sound store");
    let mut seeds = Vec::new();
    for path in store.tables("**").expect("its tables") {
        let data = store.scan(path.as_str(), &DatasetOptions::default()).expect("a table");
        let splits = data.splits(&ScanOptions::default(), &SplitOptions::default()).expect("splits");
        let storage = drumlin::storage::FileStorage::new(Arc::new(disk.clone()));
        let name = format!("blocks/{}/0.blk", splits.lease.hold());
        seeds.extend(storage.get(&name).ok().map(|bytes| bytes.to_vec()));
    }
    seeds
}
