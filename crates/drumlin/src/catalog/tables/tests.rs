//! Tables in maps: compared, and found by the blocks that they name, at a cost that is counted.

use std::cell::Cell;

use arrow::datatypes::{DataType, Field, Schema};

use super::*;
use crate::base::{SessionId, Timestamp};
use crate::block::{ALIGNMENT, Address};
use crate::table::{NewGroup, StoredSchema, TableChange, TableSpec, VersionKind};

thread_local! {
    /// How many tables were decoded from pages.
    pub(super) static DECODED: Cell<u64> = const { Cell::new(0) };
}

fn table(id: u64, versions: u64) -> TableState {
    table_in(id, versions, &[])
}

/// A table with a row group in each of `blocks`.
fn table_in(id: u64, versions: u64, blocks: &[u64]) -> TableState {
    let schema = Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, true)]));
    let spec = TableSpec { sort: Vec::new(), keyed: false };
    let mut table = TableState::new(TableId(id), spec);
    for version in 0..versions {
        let kind = if version == 0 { VersionKind::Create } else { VersionKind::Append };
        let schema = (version == 0).then(|| StoredSchema::plain(schema.clone()));
        let groups = blocks.iter().filter(|_| version == 0).map(|block| NewGroup {
            address: part(id, *block),
            rows: 1,
            dead: None,
        });
        let change = TableChange { schema, groups: groups.collect(), ..TableChange::new(kind) };
        table = table.change(&change, Seq(version + 1), Timestamp(version as i64)).unwrap();
    }
    table
}

fn block(number: u64) -> BlockId {
    BlockId { session: SessionId(1), number }
}

/// The row group of a table in a block.
fn part(table: u64, number: u64) -> Address {
    let (offset, segment_bytes) = (ALIGNMENT * (table + 1), ALIGNMENT);
    Address { block: block(number), offset, segment_bytes, directory_bytes: 32, checksum: 0 }
}

/// The same tables in pages of a few each, as a catalog snapshot has them.
fn packed(tables: &TableMap, page_bytes: usize) -> TableMap {
    let describe = |table: &TableState| TableSummary {
        versions: table.versions.len() as u64,
        groups: table.groups.len() as u64,
        ..TableSummary::default()
    };
    let mut writer = PageWriter::new(page_bytes, &describe);
    tables.write_range((None, None), false, &mut writer).unwrap();
    writer.cut();
    TableMap::of_pages(writer.take()).unwrap()
}

/// The tables that a comparison asks about.
fn asked(a: &TableMap, b: &TableMap) -> BTreeSet<u64> {
    let mut asked = BTreeSet::new();
    let differs = |a: Option<&TableState>, b: Option<&TableState>| {
        assert!(asked.insert(a.or(b).unwrap().id.0), "a table is compared twice");
        false
    };
    assert!(!a.any_differs(b, differs).unwrap());
    asked
}

#[test]
fn comparing_tables_costs_what_differs_whatever_pages_they_are_in() {
    let mut rng = fastrand::Rng::with_seed(11);
    for tables in [1, 2, 40, 1000] {
        let all: OrdMap<TableId, Arc<TableState>> =
            (0..tables).map(|id| (TableId(id), Arc::new(table(id, 1 + id % 3)))).collect();
        let mut before = TableMap::of(all);
        for round in 0..30 {
            if rng.bool() {
                before = packed(&before, rng.usize(100..8000));
            }
            let (mut now, mut changed) = (before.clone(), BTreeSet::new());
            for _ in 0..rng.usize(..4) {
                let id = rng.u64(..tables + 2);
                changed.insert(id);
                match rng.u8(..4) {
                    0 => now.remove(TableId(id)).unwrap(),
                    _ => now.put(table(id, 4 + round)).unwrap(),
                }
            }
            if rng.bool() {
                now = packed(&now, rng.usize(100..8000));
            }
            let differing: BTreeSet<u64> = (0..tables + 2)
                .filter(|id| before.get(TableId(*id)).unwrap() != now.get(TableId(*id)).unwrap())
                .collect();
            let open: BTreeSet<u64> =
                before.open.keys().chain(now.open.keys()).map(|id| id.0).filter(|id| *id < tables + 2).collect();
            for (a, b) in [(&before, &now), (&now, &before)] {
                let asked = asked(a, b);
                assert!(differing.is_subset(&asked), "{differing:?} differ, {asked:?} were compared");
                // Beside those, only tables that are decoded on one side and in a page on the other.
                assert!(asked.iter().all(|id| differing.contains(id) || open.contains(id)), "{asked:?}");
                let any = a.any_differs(b, |a, b| a != b).unwrap();
                assert_eq!(any, !differing.is_empty(), "{changed:?}");
            }
            before = now;
        }
    }
}

/// The tables that name one of `blocks`, and how many were decoded to find them.
fn naming(tables: &TableMap, blocks: &BTreeSet<BlockId>) -> (Vec<u64>, u64) {
    let named = |table: &TableState| table.addresses().filter(|address| blocks.contains(&address.block)).count() as u64;
    let records = tables.iter().map(|table| named(&table.unwrap())).sum();
    let before = DECODED.get();
    let mut found = Vec::new();
    tables.naming(blocks, records, |table| found.push(table.id.0)).unwrap();
    found.sort_unstable();
    (found, DECODED.get() - before)
}

#[test]
fn tables_that_name_a_block_are_found_wherever_they_are() {
    let mut rng = fastrand::Rng::with_seed(12);
    for _ in 0..60 {
        let (tables, blocks) = (rng.u64(1..200), rng.u64(1..20));
        let mut draw = |id: u64| {
            let own: Vec<u64> =
                (0..rng.usize(..4)).map(|_| rng.u64(..blocks)).collect::<BTreeSet<_>>().into_iter().collect();
            table_in(id, 1, &own)
        };
        let all = (0..tables).map(|id| (TableId(id), Arc::new(draw(id)))).collect();
        let mut map = packed(&TableMap::of(all), 500);
        let changed = [tables / 2, tables, tables + 1].map(&mut draw);
        for round in 0..4 {
            let wanted: BTreeSet<BlockId> = (0..rng.u64(..4)).map(|_| block(rng.u64(..blocks))).collect();
            let names = |table: &TableState| table.addresses().any(|address| wanted.contains(&address.block));
            let expected: Vec<u64> =
                map.iter().map(Result::unwrap).filter(|table| names(table)).map(|table| table.id.0).collect();
            assert_eq!(naming(&map, &wanted).0, expected, "{wanted:?}");
            match round {
                0 => changed.iter().cloned().for_each(|table| map.put(table).unwrap()),
                1 => map.remove(TableId(rng.u64(..tables))).unwrap(),
                _ => map = packed(&map, 700),
            }
        }
    }
}

#[test]
fn finding_what_names_new_blocks_decodes_no_table_however_many_there_are() {
    for tables in [1_000, 20_000] {
        // A block for each hundred tables.
        let all = (0..tables).map(|id| (TableId(id), Arc::new(table_in(id, 1, &[id / 100])))).collect();
        let mut map = packed(&TableMap::of(all), 4096);
        map.put(table_in(tables, 1, &[1_000_000])).unwrap();
        assert_eq!(naming(&map, &BTreeSet::from([block(1_000_000)])), (vec![tables], 0));
        // What was written last is found first.
        let last = BTreeSet::from([block(tables / 100 - 1)]);
        let (found, decoded) = naming(&map, &last);
        assert_eq!(found, (tables - 100..tables).collect::<Vec<_>>());
        assert!(decoded < 300, "{decoded} tables were decoded for 100");
        // What is older is looked for in all pages, but only once.
        let first = BTreeSet::from([block(0)]);
        let (found, decoded) = naming(&map, &first);
        assert_eq!((found, decoded >= tables - 300), ((0..100).collect(), true));
        assert!(naming(&map, &first).1 < 300, "pages that name none of the blocks are decoded again");
        assert!(naming(&map, &last).1 < 300);
    }
}
