//! What a store has counted of its work since it was opened, with names and words: for programs, and in the text format
//! that Prometheus reads.

use std::fmt::Write;

use crate::base::{BUCKETS, Counter, Histogram, Request, Result};
use crate::store::Store;

/// A number, or numbers, that a store tells about its work.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// Its name, with its unit: `drumlin_commits_total`.
    pub name: &'static str,
    /// What it counts.
    pub help: &'static str,
    /// What parts it: the kind of a request.
    pub label: Option<(&'static str, &'static str)>,
    /// The numbers.
    pub value: MetricValue,
}

/// The numbers of a metric.
#[derive(Clone, Debug, PartialEq)]
pub enum MetricValue {
    /// Grows as long as the store is open.
    Counter(u64),
    /// What is so now.
    Gauge(u64),
    /// Durations.
    Histogram {
        /// For each bucket the longest duration in it, in seconds, and how many durations are not longer; ascending.
        buckets: Vec<(f64, u64)>,
        /// How many there are, longer ones too.
        count: u64,
        /// Their sum in seconds.
        sum: f64,
    },
}

/// What the store has counted since this process opened it, and what it holds in memory. Costs some microseconds.
///
/// ```
/// use drumlin::{MetricValue, Store, Tables};
///
/// let store = Store::memory()?;
/// store.tree().put("a", 1)?;
/// let metrics = drumlin::metrics(&store)?;
/// let commits = metrics.iter().find(|metric| metric.name == "drumlin_commits_total").unwrap();
/// assert_eq!(commits.value, MetricValue::Counter(1));
/// # Ok::<(), drumlin::Error>(())
/// ```
///
/// # Errors
/// `Closed` if the store is closed.
pub fn metrics(store: &Store) -> Result<Vec<Metric>> {
    let state = store.current()?;
    let counted = &store.env().metrics;
    let cache = store.reader().cache();
    let mut all = MetricList::default();
    all.counter("drumlin_commits_total", "Entries of the log that this process made.", &counted.commits);
    all.counter("drumlin_transactions_total", "Transactions in these commits.", &counted.transactions);
    let help = "Transactions refused because others had changed what they read; most are run again.";
    all.counter("drumlin_conflicts_total", help, &counted.conflicts);
    let help = "Turns of commits in which another process committed first.";
    all.counter("drumlin_commits_overtaken_total", help, &counted.overtaken);
    let help = "Entries of the log that this process handed in, and that were added with those of others.";
    all.counter("drumlin_commits_handed_in_total", help, &counted.handed_in);
    all.histogram("drumlin_commit_seconds", "Turns of commits, each for all that waited.", &counted.commit_micros);
    all.counter("drumlin_log_syncs_total", "Syncs of a log in files.", &counted.log_syncs);
    let help = "Requests to a server that keeps the log.";
    all.counter("drumlin_log_requests_total", help, &counted.log_requests);
    for (kind, name) in Request::ALL {
        let value = MetricValue::Counter(counted.requests[kind as usize].get());
        let (name, help) = (("kind", name), "Requests to storage; one may be for many objects.");
        all.0.push(Metric { name: "drumlin_storage_requests_total", help, label: Some(name), value });
    }
    let help = "Requests to storage, or parts of them, that failed.";
    all.counter("drumlin_storage_failures_total", help, &counted.request_failures);
    let help = "Pauses before a request that was refused or not answered was repeated.";
    all.counter("drumlin_storage_pauses_total", help, &counted.pauses);
    all.histogram("drumlin_storage_request_seconds", "Requests to storage.", &counted.request_micros);
    all.counter("drumlin_storage_read_bytes_total", "Bytes of objects read from storage.", &counted.bytes_read);
    all.counter("drumlin_storage_written_bytes_total", "Bytes of objects written to storage.", &counted.bytes_written);
    all.number("drumlin_cache_hits_total", "Look-ups in the cache of encoded data that found it.", cache.hits);
    all.number("drumlin_cache_misses_total", "Look-ups in the cache that did not.", cache.misses);
    all.counter("drumlin_read_rows_total", "Rows that scans gave.", &counted.rows_read);
    all.counter("drumlin_read_row_groups_total", "Row groups of which scans gave rows.", &counted.groups_read);
    let help = "Row groups that statistics ruled out, so that scans did not open them.";
    all.counter("drumlin_pruned_row_groups_total", help, &counted.groups_pruned);
    all.counter("drumlin_read_index_pages_total", "Pages of indexes that were read.", &counted.index_pages_read);
    all.counter("drumlin_looked_up_keys_total", "Keys looked up.", &counted.keys);
    all.histogram("drumlin_checkpoint_seconds", "Checkpoints.", &counted.checkpoint_micros);
    all.histogram("drumlin_reclaim_seconds", "Reclaims.", &counted.reclaim_micros);
    all.counter("drumlin_reclaimed_bytes_total", "Bytes of blocks that reclaims deleted.", &counted.reclaimed_bytes);
    all.counter("drumlin_trigger_calls_total", "Calls of triggers.", &counted.trigger_calls);
    all.counter("drumlin_trigger_failures_total", "Calls of triggers that failed.", &counted.trigger_failures);
    all.gauge("drumlin_seq", "The last commit that is seen here.", state.seq.0);
    all.gauge("drumlin_cache_bytes", "Memory of the cache of encoded data.", cache.bytes);
    let help = "Memory of rows written by key that wait for a checkpoint.";
    all.gauge("drumlin_memtable_bytes", help, store.commits().newest().memtable_bytes());
    let help = "Tables that are held decoded in memory; the others are in pages.";
    all.gauge("drumlin_decoded_tables", help, state.open_tables_len() as u64);
    let help = "Memory of small blocks that travelled in commits.";
    all.gauge("drumlin_inline_bytes", help, store.storage().held_bytes());
    let help = "Bytes of the log that the next catalog snapshot will make unnecessary.";
    all.gauge("drumlin_log_bytes", help, store.commits().log().bytes());
    Ok(all.0)
}

/// Metrics in the text format of Prometheus (version 0.0.4).
pub fn prometheus(metrics: &[Metric]) -> String {
    let mut text = String::new();
    let mut last = "";
    for metric in metrics {
        let name = metric.name;
        let kind = match metric.value {
            MetricValue::Counter(_) => "counter",
            MetricValue::Gauge(_) => "gauge",
            MetricValue::Histogram { .. } => "histogram",
        };
        if name != last {
            // Writing to a text cannot fail.
            let _ = write!(text, "# HELP {name} {}\n# TYPE {name} {kind}\n", metric.help);
            last = name;
        }
        let label = metric.label.map_or_else(String::new, |(key, value)| format!("{{{key}=\"{value}\"}}"));
        let _ = match &metric.value {
            MetricValue::Counter(value) | MetricValue::Gauge(value) => writeln!(text, "{name}{label} {value}"),
            MetricValue::Histogram { buckets, count, sum } => {
                for (end, count) in buckets {
                    let _ = writeln!(text, "{name}_bucket{{le=\"{end}\"}} {count}");
                }
                write!(text, "{name}_bucket{{le=\"+Inf\"}} {count}\n{name}_sum {sum}\n{name}_count {count}\n")
            }
        };
    }
    text
}

#[derive(Default)]
struct MetricList(Vec<Metric>);

impl MetricList {
    fn push(&mut self, name: &'static str, help: &'static str, value: MetricValue) {
        self.0.push(Metric { name, help, label: None, value });
    }

    fn counter(&mut self, name: &'static str, help: &'static str, counter: &Counter) {
        self.number(name, help, counter.get());
    }

    fn number(&mut self, name: &'static str, help: &'static str, value: u64) {
        self.push(name, help, MetricValue::Counter(value));
    }

    fn gauge(&mut self, name: &'static str, help: &'static str, value: u64) {
        self.push(name, help, MetricValue::Gauge(value));
    }

    fn histogram(&mut self, name: &'static str, help: &'static str, histogram: &Histogram) {
        let counts = histogram.counts();
        let ends = (0..BUCKETS - 1).map(|at| (1_u64 << at) as f64 / 1e6);
        let mut count = 0;
        let buckets = ends.zip(counts).map(|(end, bucket)| {
            count += bucket;
            (end, count)
        });
        let buckets = buckets.collect();
        let (count, sum) = (counts.iter().sum(), histogram.micros() as f64 / 1e6);
        self.push(name, help, MetricValue::Histogram { buckets, count, sum });
    }
}
