//! Drumlin against RocksDB, all rows in memory: inserts, look-ups and scans, side by side in one process. See README.md.

mod art;
mod bench;
mod data;
mod measure;
mod memtable;
mod plan;
mod report;
mod rocks;
mod side;
mod store;

use plan::{Plan, SIDES};
use report::Sheet;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

fn main() -> Result<()> {
    let plan = Plan::from_args(std::env::args().skip(1))?;
    let title = format!(
        "{} keys, values of {} bytes, {} rounds; millions a second, ratios to RocksDB.\n\
         (a) memtable, (b) store, rows as bytes, (b) held: by one view, (c) store, rows as Arrow",
        plan.keys,
        data::VALUE_BYTES,
        plan.rounds
    );
    let sides = SIDES.map(|(side, _)| side);
    let mut sheet = Sheet::new(format!("{title}\nKeys of 16 random bytes"), &sides);
    let mut shapes = Sheet::new("Keys of other shapes", &sides);
    let mut art = Sheet::new("Beside artmap, ratios to it", &bench::ART_SIDES);
    bench::bench(&plan, &mut sheet)?;
    if plan.shapes {
        bench::bench_shapes(&plan, &mut shapes, &mut art)?;
    }
    let sheets = [sheet, shapes, art];
    sheets.iter().for_each(Sheet::print);
    if let Some(path) = &plan.raw {
        let lines: Vec<String> = sheets.iter().flat_map(Sheet::raw).collect();
        std::fs::write(path, format!("{{\n{}\n}}\n", lines.join(",\n")))?;
    }
    Ok(())
}
