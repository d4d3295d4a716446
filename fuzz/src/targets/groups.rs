//! What views keep of groups to go on from.

use std::sync::{Arc, OnceLock};

use arrow::array::{ArrayRef, BinaryArray, Float64Array, Int64Array, RecordBatch, StringArray};
use drumlin::aggregate::{Grouping, Groups, RANK_FROM};
use drumlin::{Aggregate, Function, GroupBy};

fn batch(seed: u64) -> RecordBatch {
    let mut rng = fastrand::Rng::with_seed(seed);
    let n: Vec<i64> = (0..20).map(|_| rng.i64(..)).collect();
    let x: Vec<f64> = (0..20).map(|_| [f64::NAN, f64::INFINITY, 0.1, -3.5e300, 5e-324][rng.usize(..5)]).collect();
    let s: Vec<String> = n.iter().map(|n| format!("{}", n % 3)).collect();
    let columns: [(&str, ArrayRef); 3] = [
        ("s", Arc::new(StringArray::from(s))),
        ("n", Arc::new(Int64Array::from(n))),
        ("x", Arc::new(Float64Array::from(x))),
    ];
    RecordBatch::try_from_iter(columns).expect("columns of a length")
}

fn plan() -> &'static Arc<Grouping> {
    static PLAN: OnceLock<Arc<Grouping>> = OnceLock::new();
    PLAN.get_or_init(|| {
        let made = |function: Function, of: &str| {
            let of = (!of.is_empty()).then(|| of.to_owned());
            Aggregate { name: format!("{function:?} {of:?}"), function, of }
        };
        let aggregates = vec![
            made(Function::Count, "x"),
            made(Function::Mean, "n"),
            made(Function::Sum, "x"),
            made(Function::Var, "x"),
            made(Function::WeightedMean("n".into()), "x"),
            made(Function::Max, "n"),
            made(Function::First, "x"),
            made(Function::Count, ""),
        ];
        let asked = GroupBy { keys: vec!["s".into()], aggregates, every: None };
        Arc::new(Grouping::new(&asked, &batch(0).schema()).expect("a sound plan"))
    })
}

fn groups(seed: u64) -> Groups {
    let mut groups = Groups::new(plan(), (0, 1)).expect("no groups");
    let batch = batch(seed);
    let places: Vec<usize> =
        plan().columns.iter().map(|name| batch.schema().index_of(name).expect("a column")).collect();
    groups.add(&batch.project(&places).expect("some columns"), RANK_FROM).expect("rows");
    groups
}

/// Groups that go on from these bytes, for each of them.
pub fn resumed(bytes: &[u8]) {
    let known = groups(1).finish_kept().expect("groups");
    let kept: BinaryArray = (0..known.rows.num_rows()).map(|_| Some(bytes)).collect();
    if let Ok(resumed) = Groups::resumed(plan(), &known.rows, &kept) {
        let _ = resumed.with_changes(groups(2), groups(3), true).finish();
    }
}

/// What is kept of groups.
pub fn seeds() -> Vec<Vec<u8>> {
    let known = (1..4).map(|seed| groups(seed).finish_kept().expect("groups"));
    known.flat_map(|known| known.kept.iter().flatten().map(<[u8]>::to_vec).collect::<Vec<_>>()).collect()
}
