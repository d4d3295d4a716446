//! Tables with a key.

use std::sync::Arc;

use drumlin::base::{ManualClock, Timestamp};
use drumlin::storage::SimDisk;

use crate::keyed_model::{KeyedModel, apply, compare, draw, run};
use crate::support::opener;

/// Operations on a keyed table alone, with checkpoints and reopening in between: after each, all of it is read.
#[test]
fn random_operations_by_key_agree_with_a_map() {
    for seed in 0..40 {
        let open = opener(seed);
        let clock = Arc::new(ManualClock::new(Timestamp(1_000_000)));
        let disk = SimDisk::new();
        let mut store = open(&disk, &clock, 2).unwrap();
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut model: Option<KeyedModel> = None;
        let mut nodes = std::collections::BTreeMap::new();
        for step in 0..60 {
            let what = match rng.u8(..8) {
                0 => {
                    store.checkpoint(&Default::default()).unwrap();
                    model.iter_mut().for_each(KeyedModel::checkpoint);
                    "checkpoint".to_owned()
                }
                1 => {
                    if rng.bool() {
                        store.close().unwrap();
                    }
                    drop(store);
                    store = open(&disk, &clock, 2).unwrap();
                    "reopen".to_owned()
                }
                _ => {
                    let op = draw(&mut rng, model.as_ref());
                    let before = (model.clone(), nodes.clone());
                    let done = apply(&mut model, &mut nodes, &op);
                    let ran = run(&store, &op);
                    assert_eq!(ran.is_ok(), done, "seed {seed}, step {step}: {op:?}: {ran:?}");
                    if !done {
                        (model, nodes) = before;
                    }
                    format!("{op:?}")
                }
            };
            compare(&store, model.as_ref()).unwrap_or_else(|e| panic!("seed {seed}, step {step}, after {what}: {e}"));
        }
        let report = store.verify(&Default::default()).unwrap();
        assert_eq!(report.faults, []);
    }
}
