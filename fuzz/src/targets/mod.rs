//! The targets.

mod catalog;
mod command;
mod filter;
mod foreign;
mod groups;
mod jobs;
mod log;
mod rows;
mod segment;
mod store;

#[path = "../../../crates/drumlin/tests/it/arrays.rs"]
#[allow(dead_code, reason = "only the arrays are wanted")]
mod arrays;

/// Something that takes untrusted bytes.
pub struct Target {
    /// Its name, and that of its folder of seeds.
    pub name: &'static str,
    /// Fails by a panic.
    pub run: fn(&[u8]),
    /// Initial inputs, made by encoders: the same at every call.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// All of them.
pub const TARGETS: &[Target] = &[
    Target { name: "arguments", run: command::arguments, seeds: command::argument_seeds },
    Target { name: "archived", run: log::archived, seeds: log::archived_seeds },
    Target { name: "cell", run: log::cell, seeds: log::cell_seeds },
    Target { name: "arrays", run: foreign::arrays, seeds: foreign::array_seeds },
    Target { name: "carried", run: jobs::carried, seeds: jobs::carried_seeds },
    Target { name: "catalog", run: catalog::snapshot, seeds: catalog::snapshot_seeds },
    Target { name: "chunk", run: log::chunk, seeds: log::chunk_seeds },
    Target { name: "directory", run: catalog::directory, seeds: catalog::directory_seeds },
    Target { name: "filter", run: filter::filter, seeds: filter::seeds },
    Target { name: "groups", run: groups::resumed, seeds: groups::seeds },
    Target { name: "import", run: command::import, seeds: command::import_seeds },
    Target { name: "key-filter", run: rows::key_filter, seeds: rows::key_filter_seeds },
    Target { name: "log", run: log::segment, seeds: log::segment_seeds },
    Target { name: "mark", run: log::mark, seeds: log::mark_seeds },
    Target { name: "offer", run: log::offer, seeds: log::offer_seeds },
    Target { name: "payload", run: catalog::payload, seeds: catalog::payload_seeds },
    Target { name: "plan", run: jobs::plan, seeds: jobs::plan_seeds },
    Target { name: "root", run: log::root, seeds: log::root_seeds },
    Target { name: "rows", run: rows::rows, seeds: rows::row_seeds },
    Target { name: "rules", run: catalog::rules, seeds: catalog::rule_seeds },
    Target { name: "schemas", run: foreign::schemas, seeds: foreign::schema_seeds },
    Target { name: "segment", run: segment::segment, seeds: segment::seeds },
    Target { name: "store", run: store::store, seeds: store::seeds },
    Target { name: "transactions", run: catalog::transactions, seeds: catalog::transaction_seeds },
];
