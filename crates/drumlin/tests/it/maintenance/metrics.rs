//! What a store counts of its work is what was done, and what it warns of is said once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use drumlin::base::{Env, Timestamp};
use drumlin::storage::{SimBucket, SimDisk};
use drumlin::store::{AsOf, LookupOptions, Options, ReadOptions, TableOptions};
use drumlin::table::ScanOptions;
use drumlin::{
    ErrorKind, Filter, MetricValue, Pattern, Store, Tables, TriggerFilter, Warn, WarningKind, metrics, prometheus,
};

use crate::processes::shared_support::clock as shared_clock;
use crate::support::{batch, env, ints, numbered, open, read};
use drumlin::base::ManualClock;

/// Counters and gauges by name, with the label if there is one, and the counts of histograms.
fn numbers(store: &Store) -> BTreeMap<String, u64> {
    let name = |metric: &drumlin::Metric| match metric.label {
        Some((_, label)) => format!("{}:{label}", metric.name),
        None => metric.name.to_owned(),
    };
    let value = |metric: &drumlin::Metric| match metric.value {
        MetricValue::Counter(value) | MetricValue::Gauge(value) => value,
        MetricValue::Histogram { count, .. } => count,
    };
    metrics(store).unwrap().iter().map(|metric| (name(metric), value(metric))).collect()
}

#[test]
fn what_is_done_is_counted() {
    let disk = SimDisk::new();
    let store = open(&disk).unwrap();
    let begun = numbers(&store);
    for name in ["drumlin_commits_total", "drumlin_read_rows_total", "drumlin_checkpoint_seconds"] {
        assert_eq!(begun[name], 0, "{name}");
    }
    let syncs = disk.counters().syncs;
    store.write("t", batch(&numbered(0, 1000)), &Default::default()).unwrap();
    store.append("t", batch(&numbered(1000, 1000)), &Default::default()).unwrap();
    let written = numbers(&store);
    // The session of its blocks is a commit too.
    assert_eq!(written["drumlin_commits_total"], store.seq().unwrap().0);
    assert_eq!(written["drumlin_transactions_total"], written["drumlin_commits_total"]);
    assert_eq!(written["drumlin_commit_seconds"], written["drumlin_commits_total"]);
    assert_eq!(written["drumlin_log_syncs_total"], written["drumlin_commits_total"]);
    assert!(
        disk.counters().syncs - syncs >= written["drumlin_log_syncs_total"],
        "no sync is counted that was not made"
    );
    let stat = store.stat().unwrap();
    assert_eq!(
        written["drumlin_storage_requests_total:put"],
        begun["drumlin_storage_requests_total:put"] + stat.blocks
    );
    let bytes = written["drumlin_storage_written_bytes_total"] - begun["drumlin_storage_written_bytes_total"];
    assert_eq!(bytes, stat.block_bytes);
    // One of the two row groups is ruled out by its statistics.
    let scan = ScanOptions { filter: Some(Filter::parse("id >= 1500").unwrap()), ..ScanOptions::default() };
    let found = store.table("t").collect(&ReadOptions::from(scan)).unwrap();
    assert_eq!(found.iter().map(arrow::array::RecordBatch::num_rows).sum::<usize>(), 500);
    let after = numbers(&store);
    assert_eq!(after["drumlin_read_rows_total"], 500);
    assert_eq!((after["drumlin_read_row_groups_total"], after["drumlin_pruned_row_groups_total"]), (1, 1));
    assert!(after["drumlin_storage_read_bytes_total"] > 0 && after["drumlin_storage_requests_total:get"] > 0);
    store.drop("t").unwrap();
    store.checkpoint(&Default::default()).unwrap();
    let reclaimed = store.reclaim(&Default::default()).unwrap();
    let after = numbers(&store);
    assert_eq!((after["drumlin_checkpoint_seconds"], after["drumlin_reclaim_seconds"]), (1, 1));
    assert_eq!(after["drumlin_reclaimed_bytes_total"], reclaimed.bytes);
    assert!(reclaimed.bytes > 0);
    store.close().unwrap();
    assert_eq!(metrics(&store).unwrap_err().kind(), ErrorKind::Closed);
}

#[test]
fn keys_conflicts_and_other_processes_are_counted() {
    let (bucket, clock) = (SimBucket::new(), shared_clock());
    let mine = crate::processes::shared_support::open(&bucket, &clock).unwrap();
    let other = crate::processes::shared_support::open(&bucket.client(), &clock).unwrap();
    let table = mine.table("k");
    table
        .create(
            ints(&[("k", vec![]), ("v", vec![])]).schema(),
            TableOptions { key: vec!["k".into()], ..Default::default() },
        )
        .unwrap();
    table.upsert(ints(&[("k", vec![1, 2]), ("v", vec![1, 2])]), &Default::default()).unwrap();
    let found = table.get_many(&ints(&[("k", vec![1, 7, 2])]), &LookupOptions::default()).unwrap();
    assert_eq!(found.found.true_count(), 2);
    assert_eq!(numbers(&mine)["drumlin_looked_up_keys_total"], 3);
    // A transaction that reads what another process then changes.
    let transaction = mine.transaction().unwrap();
    assert_eq!(transaction.tree().get("n").unwrap(), None);
    other.tree().put("n", 1).unwrap();
    transaction.tree().put("n", 2).unwrap();
    assert_eq!(transaction.commit().unwrap_err().kind(), ErrorKind::Conflict);
    let counted = numbers(&mine);
    assert_eq!(counted["drumlin_conflicts_total"], 1);
    assert!(counted["drumlin_commits_overtaken_total"] >= 1);
    assert!(counted["drumlin_storage_requests_total:put_if_match"] >= counted["drumlin_commits_total"]);
    assert_eq!(counted["drumlin_log_syncs_total"], 0, "a bucket has no log in files");
}

#[test]
fn the_text_for_prometheus_is_well_formed() {
    let store = open(&SimDisk::new()).unwrap();
    store.write("t", batch(&numbered(0, 10)), &Default::default()).unwrap();
    read(&store, "t", AsOf::Newest).unwrap();
    let metrics = metrics(&store).unwrap();
    let text = prometheus(&metrics);
    let mut types: BTreeMap<&str, &str> = BTreeMap::new();
    let mut samples: BTreeMap<&str, f64> = BTreeMap::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(types.insert(name, kind).is_none(), "{name} is declared twice");
        } else if !line.starts_with("# HELP ") {
            let (name, value) = line.rsplit_once(' ').unwrap();
            assert!(samples.insert(name, value.parse().unwrap()).is_none(), "{name} twice");
            let base = name.split('{').next().unwrap();
            let family = ["_bucket", "_sum", "_count"].iter().find_map(|end| base.strip_suffix(end));
            assert!(types.contains_key(base) || family.is_some_and(|family| types[family] == "histogram"), "{name}");
        }
    }
    for metric in &metrics {
        let name = metric.name;
        assert!(name.starts_with("drumlin_") && metric.help.ends_with('.'), "{name}");
        match &metric.value {
            MetricValue::Counter(_) => assert!(name.ends_with("_total") && types[name] == "counter", "{name}"),
            MetricValue::Gauge(_) => assert!(!name.ends_with("_total") && types[name] == "gauge", "{name}"),
            MetricValue::Histogram { buckets, count, sum } => {
                assert!(name.ends_with("_seconds") && buckets.is_sorted(), "{name}");
                assert!(buckets.windows(2).all(|pair| pair[0].1 <= pair[1].1), "{name}: counts add up");
                assert_eq!(samples[format!("{name}_bucket{{le=\"+Inf\"}}").as_str()], *count as f64);
                assert_eq!(samples[format!("{name}_sum").as_str()], *sum);
            }
        }
    }
    assert_eq!(samples["drumlin_storage_requests_total{kind=\"list\"}"].fract(), 0.0);
}

type Said = Arc<Mutex<Vec<(WarningKind, String)>>>;

fn warned(disk: &SimDisk) -> (Store, Said) {
    let said = Said::default();
    let heard = said.clone();
    let warn = Warn::new(move |kind, text| {
        heard.lock().unwrap().push((kind, text.to_owned()));
        // It harms nothing.
        panic!("a logger that panics");
    });
    let env = Env { warn, ..env(&Arc::new(ManualClock::new(Timestamp(1_000_000))), 5, 2) };
    let store = drumlin::store::open_on(Arc::new(disk.clone()), env, "sim", Options::default()).unwrap();
    (store, said)
}

#[test]
fn a_trigger_that_fails_is_warned_of() {
    let (store, said) = warned(&SimDisk::new());
    let tree = store.tree();
    let filter = TriggerFilter { pattern: Pattern::new("a/**").unwrap(), actions: Vec::new(), priority: 0 };
    tree.on(filter, Arc::new(|_| Err("no room".to_owned()))).unwrap();
    tree.put("a/b", 1).unwrap();
    tree.put("elsewhere", 1).unwrap();
    tree.wait_for_triggers(None).unwrap();
    let said = said.lock().unwrap().clone();
    assert_eq!(said.len(), 1, "{said:?}");
    assert_eq!(said[0].0, WarningKind::TriggerFailed);
    assert!(said[0].1.contains("no room") && said[0].1.contains("trigger 1"), "{said:?}");
    let counted = numbers(&store);
    assert_eq!((counted["drumlin_trigger_calls_total"], counted["drumlin_trigger_failures_total"]), (1, 1));
}

mod spans {
    use std::process::Command;
    use std::sync::atomic::{AtomicU64, Ordering};

    use tracing::span::{Attributes, Id, Record};
    use tracing::{Event, Metadata, Subscriber};

    use super::*;

    /// Notes the names of spans.
    #[derive(Clone, Default)]
    struct Names(Arc<(Mutex<Vec<String>>, AtomicU64)>);

    impl Subscriber for Names {
        fn enabled(&self, metadata: &Metadata<'_>) -> bool {
            metadata.target() == "drumlin"
        }

        fn new_span(&self, span: &Attributes<'_>) -> Id {
            self.0.0.lock().unwrap().push(span.metadata().name().to_owned());
            Id::from_u64(self.0.1.fetch_add(1, Ordering::Relaxed) + 1)
        }

        fn record(&self, _: &Id, _: &Record<'_>) {}
        fn record_follows_from(&self, _: &Id, _: &Id) {}
        fn event(&self, _: &Event<'_>) {}
        fn enter(&self, _: &Id) {}
        fn exit(&self, _: &Id) {}
    }

    /// Runs in a process of its own, whose subscriber hears all threads. Beside other tests a subscriber of one thread may
    /// hear nothing of a span that a thread without one was the first to meet (<https://github.com/tokio-rs/tracing/issues/3611>).
    #[test]
    fn what_takes_time_is_a_span() {
        const ALONE: &str = "DRUMLIN_TEST_SPANS_ALONE";
        if std::env::var_os(ALONE).is_none() {
            let (_, module) = module_path!().split_once("::").unwrap();
            let test = format!("{module}::what_takes_time_is_a_span");
            let arguments = [test.as_str(), "--exact", "--nocapture"];
            let alone =
                Command::new(std::env::current_exe().unwrap()).args(arguments).env(ALONE, "1").output().unwrap();
            let (out, err) = (String::from_utf8_lossy(&alone.stdout), String::from_utf8_lossy(&alone.stderr));
            assert!(alone.status.success() && out.contains("1 passed"), "{out}{err}");
            return;
        }
        let names = Names::default();
        tracing::subscriber::set_global_default(names.clone()).unwrap();
        let store = open(&SimDisk::new()).unwrap();
        store.write("t", batch(&numbered(0, 10)), &Default::default()).unwrap();
        store.checkpoint(&Default::default()).unwrap();
        store.reclaim(&Default::default()).unwrap();
        let names = names.0.0.lock().unwrap();
        for name in ["commit", "checkpoint", "reclaim", "storage.put", "storage.list"] {
            assert!(names.iter().any(|own| own == name), "no span '{name}' in {names:?}");
        }
    }
}
