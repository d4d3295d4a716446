//! What golden stores hold that have presences, and nodes that end by themselves: see golden.rs.

use drumlin::store::PresenceOptions;
use drumlin::{Payload, PutOptions, Store, Tables};

/// A thousand years, in microseconds.
const AGES: u64 = 1_000 * 365 * 86_400_000_000;

fn put(store: &Store, folder: &str, shared: bool) -> drumlin::Result<()> {
    let options = PresenceOptions { name: "golden".into(), life_micros: Some(30 * 86_400_000_000) };
    let presence = store.tree().presence(&options)?;
    let on = PutOptions { presence: Some(presence.number()), ..PutOptions::default() };
    store.tree().put_with(&format!("{folder}/mine"), 1, on)?;
    store.tree().put_with(
        &format!("{folder}/timed"),
        2,
        PutOptions { ttl_micros: Some(AGES), ..PutOptions::default() },
    )?;
    store.tree().presence(&PresenceOptions::default())?.end()?;
    // Where one process alone writes, the next one ends those of the last.
    if shared { Ok(()) } else { presence.end() }
}

/// The checkpoint that follows puts them into the catalog.
pub fn build(store: &Store, shared: bool) -> drumlin::Result<()> {
    put(store, "present/kept", shared)
}

/// The same in the log.
pub fn build_in_log(store: &Store, shared: bool) -> drumlin::Result<()> {
    put(store, "present/log", shared)
}

pub fn check(store: &Store, shared: bool) {
    let presences = store.tree().presences().unwrap();
    assert_eq!(
        presences.iter().map(|presence| presence.number).collect::<Vec<_>>(),
        if shared { vec![1, 3] } else { vec![] }
    );
    assert!(presences.iter().all(|presence| presence.name == "golden"));
    for (folder, number) in [("present/kept", 1), ("present/log", 3)] {
        let mine = store.tree().node(&format!("{folder}/mine")).unwrap();
        assert_eq!(mine.map(|node| node.presence), shared.then_some(Some(number)), "{folder}");
        let timed = store.tree().node(&format!("{folder}/timed")).unwrap().unwrap();
        assert_eq!(timed.payload, Some(Payload::from(2)));
        assert!(timed.expires.unwrap().0 > AGES as i64, "{folder}");
    }
}
