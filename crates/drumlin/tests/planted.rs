//! Rules broken on purpose: for each, a run of random operations and crashes must notice it. Without this, it would be
//! unknown whether the other tests can fail.
//!
//! A separate binary, without the test harness: there is one switch for the whole process, so nothing else may run in it.
#![allow(clippy::disallowed_methods, clippy::type_complexity, reason = "as in the other tests")]
#![allow(dead_code, unused_imports, reason = "the modules have tests of their own, which run elsewhere")]

#[path = "it/cells/mod.rs"]
mod cells;
#[path = "it/columns"]
mod columns {
    pub mod constraints;
    pub mod evolve;
    pub mod evolve_model;
    pub mod evolve_run;
    pub mod kinds;
    pub mod partial;
}
#[path = "it/commits"]
mod commits {
    pub mod copies;
    pub mod copy_to;
    pub mod covers;
    pub mod rules;
    pub mod turns;
}
#[path = "it/expiry"]
mod expiry {
    pub mod ttl;
}
#[path = "it/faults"]
mod faults {
    pub mod clocks;
    pub mod crash;
    pub mod histories;
    pub mod histories_folder;
    pub mod log_faults;
}
#[path = "it/feeds"]
mod feeds {
    pub mod followers;
    pub mod row_feeds;
}
#[path = "it/indexes"]
mod indexes {
    pub mod basics;
    pub mod in_memory;
    pub mod index_model;
    pub mod unique;
}
#[path = "it/joins"]
mod joins {
    pub mod brute;
}
#[path = "it/keys"]
mod keys {
    pub mod counting;
    pub mod generated;
    pub mod key_types;
}
#[path = "it/maintenance"]
mod maintenance {
    pub mod erasing;
    pub mod layout;
    pub mod pages;
}
#[path = "it/models"]
mod models {
    pub mod copy_op;
    pub mod model;
    pub mod random;
    pub mod wide;
    pub mod wide_op;
}
#[path = "it/nodes"]
mod nodes {
    pub mod presences;
}
#[path = "it/processes"]
mod processes {
    pub mod shared_faults;
    pub mod shared_fence;
    pub mod shared_support;
    pub mod shared_turns;
    pub mod sim_time;
    pub mod splits;
    pub mod staged;
}
#[path = "it/replicas/mod.rs"]
mod replicas;
#[path = "it/rows"]
mod rows {
    pub mod aggregates;
    pub mod diffs;
    pub mod keyed_model;
    pub mod laid_out;
    pub mod merges;
    pub mod ordered;
    pub mod patches;
    pub mod replacing;
    pub mod stories;
    pub mod updates;
}
#[path = "it/seeds.rs"]
mod seeds;
#[path = "it/support.rs"]
mod support;
#[path = "it/views"]
mod views {
    pub mod changes;
    pub mod made;
    pub mod writers;
}

use std::sync::Arc;

use drumlin::base::planted::{Bug, plant};
use drumlin::base::{ManualClock, Timestamp};
use drumlin::catalog::{Condition, Field, Pattern, Payload, Projection, PutOptions};
use drumlin::storage::{CrashPoint, DiskFault, SimDisk};
use drumlin::store::AsOf;
use drumlin::{ErrorKind, Tables};

use cells::{moves, offers};
use columns::{constraints, evolve, evolve_model, evolve_run, partial};
use commits::{copies, copy_to, covers, rules, turns};
use expiry::ttl;
use faults::{clocks, crash, histories, histories_folder, log_faults};
use feeds::{followers, row_feeds};
use indexes::{basics, in_memory, index_model, unique};
use joins::brute;
use keys::{counting, generated, key_types};
use maintenance::{erasing, layout, pages};
use model::Model;
use models::{copy_op, model, random, wide, wide_op};
use nodes::presences;
use processes::{shared_faults, shared_fence, shared_support, shared_turns, sim_time, splits, staged};
use random::{Op, apply, compare, draw, run};
use replicas::{cut_off, following, promotion};
use rows::{aggregates, diffs, keyed_model, laid_out, merges, ordered, patches, replacing, stories, updates};
use support::{batch, numbered, open, open_with, read};
use views::{changes, writers};

/// Those of which history a store has.
const HISTORIES: [(Bug, fn() -> Result<(), String>); 6] = [
    (Bug::CompareNumbersOnly, || histories::rolled_back(1, 1)),
    (Bug::OverwriteOnce, histories::taken_name),
    (Bug::TrustNames, histories_folder::removed_while_open),
    (Bug::GoOnInOtherHistory, histories::made_again),
    (Bug::IgnoreWitness, histories::older_roots),
    (Bug::IgnorePrev, histories_folder::mixed_segments),
];

/// Runs random operations until a fault strikes, then loses power; returns what went wrong, if anything.
fn strike(seed: u64) -> Result<(), String> {
    let clock = Arc::new(ManualClock::new(Timestamp(1_000_000)));
    let mut rng = fastrand::Rng::with_seed(seed);
    let disk = SimDisk::new();
    let fault =
        [DiskFault::Crash(CrashPoint::Before), DiskFault::Crash(CrashPoint::After), DiskFault::Fail][rng.usize(..3)];
    // Often early: creating the store takes only a few operations.
    let at = if rng.bool() { rng.u64(..20) } else { rng.u64(..200) };
    disk.plan(at, fault);
    let (mut model, mut trash) = (Model::default(), Vec::new());
    let mut before = model.clone();
    // Whether it is open if the interrupted operation took effect.
    let mut open_end = false;
    let mut survived = None;
    if let Ok(mut store) = open_with(&disk, &clock, 1) {
        for _ in 0..60 {
            let op = draw(&mut rng, &model, false);
            let (model_before, trash_before) = (model.clone(), trash.clone());
            if !apply(&mut model, &mut trash, &op) {
                (model, trash) = (model_before, trash_before);
                continue;
            }
            before = model_before;
            let done = run(&mut store, || open_with(&disk, &clock, 1), &op);
            if disk.is_dead() {
                open_end = true;
                break;
            }
            if let Err(e) = done {
                match e.kind() {
                    ErrorKind::Unavailable if !op.is_composite() => {
                        model = before.clone();
                        // Taken before a clean close syncs what the failure left.
                        survived = Some(disk.crash(seed));
                    }
                    ErrorKind::Unavailable | ErrorKind::InDoubt => open_end = true,
                    _ => return Err(format!("{op:?}: {e}")),
                }
                break;
            }
            if matches!(op, Op::Checkpoint | Op::Reclaim) {
                compare(&store, &model)?;
            }
        }
    }
    if disk.is_dead() && rng.bool() {
        // Only the process died; a new one continues, and only then the machine goes down.
        disk.revive();
        let store = open_with(&disk, &clock, 1).map_err(|e| e.to_string())?;
        if compare(&store, &model).is_err() {
            compare(&store, &before)?;
            model = before.clone();
        }
        if rng.bool() {
            // What it deletes must not depend on anything that can be lost.
            disk.plan(disk.counters().changes + rng.u64(..8), DiskFault::Crash(CrashPoint::Before));
            let _ = store.reclaim(&Default::default());
            return survives(&disk.crash(seed), &clock, &model, &model);
        }
        store.tree().put("n/9", Payload::from(9)).map_err(|e| e.to_string())?;
        model.nodes.insert("n/9".into(), 9);
        open_end = false;
    }
    let survived = survived.unwrap_or_else(|| disk.crash(seed));
    survives(&survived, &clock, &model, if open_end { &before } else { &model })
}

/// Checks that after the power is back, the store shows one of the two states, and every byte is right.
fn survives(disk: &SimDisk, clock: &Arc<ManualClock>, model: &Model, or: &Model) -> Result<(), String> {
    let store = open_with(disk, clock, 1).map_err(|e| e.to_string())?;
    if compare(&store, model).is_err() {
        compare(&store, or)?;
    }
    let report = store.verify(&Default::default()).map_err(|e| e.to_string())?;
    if report.faults.is_empty() { Ok(()) } else { Err(format!("{:?}", report.faults)) }
}

/// Rows deleted while their row group is being rewritten must stay deleted.
fn delete_during_checkpoint() -> Result<(), String> {
    let store = open(&SimDisk::in_memory()).unwrap();
    store.write("t", batch(&numbered(0, 10)), &Default::default()).unwrap();
    for part in 1..4 {
        store.append("t", batch(&numbered(part * 10, 10)), &Default::default()).unwrap();
    }
    let during = store.clone();
    let options = drumlin::store::CheckpointOptions {
        task: drumlin::base::Task {
            progress: Some(Arc::new(move |_| {
                during.table("t").delete("id % 2 = 0", &Default::default()).unwrap();
            })),
            ..Default::default()
        },
        ..Default::default()
    };
    let report = store.checkpoint(&options).unwrap();
    assert!(report.tables == 1 && report.windows_void == 0, "{report:?}");
    let left = read(&store, "t", AsOf::Newest).map_err(|e| e.to_string())?;
    if left.iter().any(|(id, _)| id % 2 == 0) { Err("deleted rows are back".into()) } else { Ok(()) }
}

/// A commit must not depend on what has changed since it was read.
fn write_skew() -> Result<(), String> {
    let store = open(&SimDisk::in_memory()).unwrap();
    let tx = store.transaction().unwrap();
    tx.tree().get("read").unwrap();
    tx.tree().put("written", Payload::from(1)).unwrap();
    store.tree().put("read", Payload::from(1)).unwrap();
    if tx.commit().is_err() { Ok(()) } else { Err("a commit depends on what has changed".into()) }
}

/// A projection must show what the tree holds.
fn projection_in_step() -> Result<(), String> {
    let store = open(&SimDisk::in_memory()).unwrap();
    let field = |text: &str| vec![Field::new(text).unwrap()];
    let (pattern, key, value) = (Pattern::new("n/*").unwrap(), field("name"), field("payload"));
    store.tree().put_projection("p", Projection { pattern, key, value, bag: false }).unwrap();
    store.tree().put("n/a", Payload::from(1)).unwrap();
    if store.tree().projection("p").unwrap().count() == 1 { Ok(()) } else { Err("the projection lags behind".into()) }
}

/// A node whose life depends on another must be deleted with it.
fn cascade() -> Result<(), String> {
    let store = open(&SimDisk::in_memory()).unwrap();
    store.tree().put("a", Payload::from(1)).unwrap();
    let keep_while = Some(vec![("a".to_owned(), Condition::Exists(true))]);
    store.tree().put_with("b", Payload::from(1), PutOptions { keep_while, ..PutOptions::default() }).unwrap();
    store.tree().delete("a", None).unwrap();
    if store.tree().exists("b").unwrap() { Err("a node outlives what it lives on".into()) } else { Ok(()) }
}

fn by_key(store: &drumlin::Store, rows: &[(i64, &str)]) {
    let rows: Vec<support::Row> = rows.iter().map(|(id, name)| (*id, Some((*name).to_owned()))).collect();
    let key = drumlin::store::TableOptions { key: vec!["id".into()], ..Default::default() };
    store.table("k").create(batch(&[]).schema(), key).ok();
    store.table("k").upsert(batch(&rows), &Default::default()).unwrap();
}

/// Rows that are only in the log must be there when it is read again.
fn rows_in_the_log() -> Result<(), String> {
    let disk = SimDisk::new();
    let store = open(&disk).unwrap();
    by_key(&store, &[(1, "a")]);
    for part in 0..4 {
        store.write(&format!("t{part}"), batch(&numbered(0, 10)), &Default::default()).unwrap();
        store.table(&format!("t{part}")).delete("id > 2", &Default::default()).unwrap();
    }
    store.set_retention("**", Some(drumlin::catalog::Retention::KeepLast(1))).unwrap();
    let during = store.clone();
    let progress = move |_| by_key(&during, &[(2, "during")]);
    let task = drumlin::base::Task { progress: Some(Arc::new(progress)), ..Default::default() };
    store.checkpoint(&drumlin::store::CheckpointOptions { task, ..Default::default() }).map_err(|e| e.to_string())?;
    store.close().map_err(|e| e.to_string())?;
    let left = open(&disk).and_then(|store| read(&store, "k", AsOf::Newest)).map_err(|e| e.to_string())?;
    if left.len() == 2 { Ok(()) } else { Err(format!("rows written during a checkpoint are gone: {left:?}")) }
}

/// A flushed row must replace the one with its key.
fn one_row_a_key() -> Result<(), String> {
    let store = open(&SimDisk::in_memory()).unwrap();
    for name in ["a", "b"] {
        by_key(&store, &[(1, name)]);
        store.checkpoint(&Default::default()).unwrap();
    }
    let left = read(&store, "k", AsOf::Newest).map_err(|e| e.to_string())?;
    if left.len() == 1 { Ok(()) } else { Err(format!("a key has two rows: {left:?}")) }
}

/// Of two inserts of one key, one is refused, even if both have found it new.
fn insert_once() -> Result<(), String> {
    let store = open(&SimDisk::in_memory()).unwrap();
    by_key(&store, &[]);
    let row = || batch(&[(1, None)]);
    let tx = store.transaction().unwrap();
    tx.table("k").insert(row(), &Default::default()).unwrap();
    store.table("k").insert(row(), &Default::default()).unwrap();
    if tx.commit().is_err() { Ok(()) } else { Err("a key was inserted twice".into()) }
}

/// Blocks that never were on storage must not be listed for deletion.
fn inline_is_not_condemned() -> Result<(), String> {
    let clock = Arc::new(ManualClock::new(Timestamp(1_000_000)));
    let store = support::open_inline(&SimDisk::in_memory(), &clock, 1).unwrap();
    store.write("t", batch(&numbered(0, 3)), &Default::default()).unwrap();
    store.drop("t").unwrap();
    store.reclaim(&Default::default()).unwrap();
    store.write("t", batch(&numbered(0, 3)), &Default::default()).unwrap();
    store.write("t", batch(&numbered(0, 3)), &Default::default()).unwrap();
    store.delete_versions(&[("t".into(), vec![drumlin::base::Version(0)])], drumlin::store::Missing::Refuse).unwrap();
    match store.stat().unwrap().condemned {
        0 => Ok(()),
        n => Err(format!("{n} blocks are to be deleted that are not on storage")),
    }
}

/// Blocks to which a crash may bring back references must not have been deleted.
fn delete_after_sync() -> Result<(), String> {
    let disk = SimDisk::new();
    let sync = drumlin::store::SyncMode::Interval(std::time::Duration::from_secs(3600));
    let options = || drumlin::store::Options { sync, inline_bytes: 0, ..Default::default() };
    let clock = Arc::new(ManualClock::new(Timestamp(1_000_000)));
    let open =
        |disk: &SimDisk| drumlin::store::open_on(Arc::new(disk.clone()), support::env(&clock, 1, 1), "sim", options());
    let store = open(&disk).unwrap();
    store.write("t", batch(&numbered(0, 10)), &Default::default()).unwrap();
    store.sync().unwrap();
    store.drop("t").unwrap();
    store.reclaim(&Default::default()).unwrap();
    for seed in 0..20 {
        let again = open(&disk.crash(seed)).map_err(|e| e.to_string())?;
        if again.table("t").stat().is_ok() {
            read(&again, "t", AsOf::Newest).map_err(|e| e.to_string())?;
        }
    }
    Ok(())
}

/// What an encoder that loses nulls, or mixes up rows, makes of rows that are there is noticed before it takes their place.
fn broken_encoders_are_caught() {
    for bug in [Bug::EncodeNoNulls, Bug::EncodeReversed] {
        let store = open(&SimDisk::in_memory()).unwrap();
        let rows: Vec<support::Row> = (0..200).map(|id| (id, (id % 3 > 0).then(|| format!("n{}", id % 7)))).collect();
        let purge = drumlin::store::CheckpointOptions {
            plan: drumlin::table::PlanOptions { dead_share_min: 0.0, ..Default::default() },
            ..Default::default()
        };
        store.write("t", batch(&rows), &Default::default()).unwrap();
        store.set_retention("t", Some(drumlin::catalog::Retention::KeepLast(1))).unwrap();
        store.table("t").delete("id % 5 = 1", &Default::default()).unwrap();
        by_key(&store, &[]);
        store.table("k").upsert(batch(&rows), &Default::default()).unwrap();
        let left: Vec<support::Row> = rows.iter().filter(|(id, _)| id % 5 != 1).cloned().collect();
        let shows = |when: &str| {
            assert_eq!(read(&store, "t", AsOf::Newest).unwrap(), left, "{bug:?}, {when}");
            assert_eq!(read(&store, "k", AsOf::Newest).unwrap(), rows, "{bug:?}, {when}");
        };
        plant(Some(bug));
        let report = store.checkpoint(&purge).unwrap();
        let set = [("name".to_owned(), drumlin::Expression::parse("'x'").unwrap())];
        let update = store.table("t").update(&set, Some("id = 7"), &Default::default());
        plant(None);
        // The flush of one table, and the rewrite of the other.
        assert_eq!(report.failures.len(), 2, "{bug:?}: {report:?}");
        assert!(update.is_err(), "{bug:?}: {update:?}");
        shows("while the encoder was broken");
        let report = store.checkpoint(&purge).unwrap();
        assert!(report.failures.is_empty() && report.rows_flushed > 0 && report.rows_removed > 0, "{report:?}");
        shows("afterwards");
        println!("{bug:?} caught before its rows took the place of others");
    }
}

fn main() {
    const ROUNDS: u64 = 6000;
    plant(None);
    for seed in seeds::list(0..ROUNDS, ROUNDS / 10) {
        strike(seed).unwrap_or_else(|e| panic!("no bug is planted, but seed {seed} (DRUMLIN_SEED={seed}): {e}"));
    }
    for bug in [
        Bug::DeleteBeforeUnlink,
        Bug::SkipObjectSync,
        Bug::SkipObjectNameSync,
        Bug::SkipFolderSync,
        Bug::SkipLogSync,
        Bug::SkipLogHeaderSync,
        Bug::SkipLogNameSync,
        Bug::SkipLogFolderSync,
        Bug::SkipUndoSync,
        Bug::SkipReopenSync,
        Bug::SkipOpenSync,
        Bug::CutLogBeforeSnapshot,
    ] {
        plant(Some(bug));
        let noticed = (0..ROUNDS).find(|seed| strike(*seed).is_err());
        plant(None);
        assert!(noticed.is_some(), "{bug:?} was not noticed in {ROUNDS} rounds");
        println!("{bug:?} noticed with seed {}", noticed.unwrap());
    }
    type Check = fn() -> Result<(), String>;
    let single: [(Bug, Check); 152] = [
        (Bug::ForgetConcurrentDeletes, delete_during_checkpoint),
        (Bug::MoveWhatLeaves, rules::checkpoints_move_what_is_left),
        (Bug::TrustFirstColumn, ordered::row_groups_that_touch_are_told_apart),
        (Bug::SortParts, ordered::frames_are_sorted_as_a_whole),
        (Bug::LaterFirst, ordered::frames_are_sorted_as_a_whole),
        (Bug::DrawLate, ordered::what_overlaps_is_merged_as_it_is_needed),
        (Bug::LeaveOverlaps, ordered::overlapping_row_groups_are_merged),
        (Bug::ForgetMoves, ordered::rows_are_found_after_a_merge),
        (Bug::SkipFootprint, write_skew),
        (Bug::ForgetProjections, projection_in_step),
        (Bug::ForgetCascade, cascade),
        (Bug::ForgetRowsFrom, rows_in_the_log),
        (Bug::ForgetHiddenRows, one_row_a_key),
        (Bug::SkipKeyCheck, insert_once),
        (Bug::SkipSyncBeforeDelete, delete_after_sync),
        (Bug::PlainRootPut, shared_faults::sleepers),
        (Bug::DeleteNamedChunks, shared_faults::killed_while_cutting),
        (Bug::SkipFence, shared_faults::ended_session),
        (Bug::ForgetAmbiguity, shared_faults::lost_answers),
        (Bug::ForgetMark, log_faults::cut_after_close),
        (Bug::SyncTogether, || log_faults::sync_together(false)),
        (Bug::HastyRetries, shared_turns::one_put_a_second),
        (Bug::NoTurns, shared_turns::turns),
        (Bug::TrustFolders, shared_fence::in_a_folder),
        (Bug::TellFenced, shared_fence::in_a_bucket),
        (Bug::CondemnInline, inline_is_not_condemned),
        (Bug::ForgetMoves, || layout::transactions_beside_checkpoints(0..20)),
        (Bug::KeepOwnGroups, || layout::transactions_beside_checkpoints(0..40)),
        (Bug::KeepFigures, pages::what_pages_say_follows_where_tables_are),
        (Bug::KeepOwnVersions, layout::own_versions_are_named),
        (Bug::SkipCarry, || layout::transactions_beside_checkpoints(0..20)),
        (Bug::TrustClock, || clocks::beside_a_wrong_clock(20 * 365 * 86_400_000_000, true)),
        (Bug::TakeTooLarge, turns::too_large_together),
        (Bug::ForgetHistories, rules::times_between_commits_survive_a_flush),
        (Bug::ForgetGaps, rules::times_of_deleted_versions_are_refused),
        (Bug::ExpireByBirth, rules::replaced_versions_are_kept_for_their_time),
        (Bug::ForgetPins, rules::snapshots_hold_their_versions),
        (Bug::ReclaimPinned, rules::readers_keep_what_they_read),
        (Bug::IgnoreRest, rules::blocks_rest),
        (Bug::CrossOffFailed, rules::failed_deletions_stay_listed),
        (Bug::LeaveInTrash, rules::undropped_tables_stay),
        (Bug::DropAtOnce, rules::the_last_drop_comes_back_first),
        (Bug::CopyNoNumbers, generated::copies_go_on),
        (Bug::FewUuids, generated::uuids_differ),
        (Bug::ReserveInMemory, generated::numbers_are_taken_once),
        (Bug::AddToOld, counting::nothing_added_is_lost),
        (Bug::CompareEarly, counting::what_is_expected_holds),
        (Bug::CoverByBase, basics::patches_uncover),
        (Bug::IndexLiveRows, basics::older_versions_are_covered),
        (Bug::ForgetCovers, basics::moved_row_groups_stay_covered),
        (Bug::IndexByName, basics::columns_go_by_their_ids),
        (Bug::NewIds, basics::columns_go_by_their_ids),
        (Bug::FailedAsNull, basics::what_cannot_be_computed_is_scanned),
        (Bug::OneAlternative, basics::alternatives_are_all_asked),
        (Bug::DropEntry, basics::runs_have_all_entries),
        (Bug::PurgeSkipsRuns, basics::values_leave_indexes),
        (Bug::IgnoreIndexCondition, basics::conditions_are_part_of_filters),
        (Bug::IndexOfOtherType, basics::other_types_are_scanned),
        (Bug::ForgetOpenParts, basics::long_values_are_hits),
        (Bug::KeepPlaces, basics::runs_are_merged),
        (Bug::SkipValues, unique::others_are_noticed),
        (Bug::JudgeBase, unique::results_are_judged),
        (Bug::CompareAllRows, unique::rows_of_the_index_are_compared),
        (Bug::TrustOldRows, unique::old_rows_are_compared),
        (Bug::ShowExpired, ttl::expired_rows_are_not_seen),
        (Bug::IgnoreExpiry, ttl::what_was_looked_up_is_still_there),
        (Bug::CountExpired, ttl::expired_rows_are_not_counted),
        (Bug::DeleteByOwnClock, ttl::clocks_that_are_ahead_destroy_nothing),
        (Bug::LeaveExpired, ttl::keys_of_expired_rows_are_free),
        (Bug::DiffWithoutExpiry, ttl::differences_tell_what_has_expired),
        (Bug::FeedForgetsMemory, row_feeds::rows_in_memory_are_told),
        (Bug::FeedUpdatesExpired, row_feeds::expired_rows_are_told),
        (Bug::FeedFiltersAfter, row_feeds::filtered_rows_are_told),
        (Bug::ForgetFollowers, followers::followers_miss_nothing),
        (Bug::ForgetEpoch, followers::earlier_consumers_are_refused),
        (Bug::LeaveOrphans, presences::nodes_end_with_their_presence),
        (Bug::ExpireRenewed, presences::nodes_that_were_renewed_stay),
        (Bug::SilenceByWallClock, presences::clocks_that_are_set_end_nothing),
        (Bug::ForgetLaterRows, in_memory::later_rows_are_found),
        (Bug::TrustHitsOfGroups, in_memory::rewritten_rows_are_hidden),
        (Bug::MissEqualTimes, brute::joins),
        (Bug::DropEarlier, brute::joins),
        (Bug::UpdateWithoutRetraction, changes::views),
        (Bug::CatchUpWithoutRows, changes::views),
        (Bug::TrustOldDelta, writers::many_writers),
        (Bug::ShowAsLaidOut, laid_out::rows_keep_their_places),
        (Bug::LayOutPart, laid_out::older_versions_keep_what_was_laid_out_together),
        (Bug::ForgetShared, rules::shared_row_groups_are_counted),
        (Bug::SkipPurge, rules::purged_rows_leave_storage),
        (Bug::ForgetAbandoned, rules::abandoned_blocks_are_deleted),
        (Bug::RetryAsNew, shared_faults::lost_answers),
        (Bug::SweepOpenSessions, rules::audits_spare_writers),
        (Bug::MixKeyTypes, key_types::older_versions_beside_the_newest),
        (Bug::SkipChecksum, rules::damaged_blocks_are_noticed),
        (Bug::ForgetOthersInProjections, rules::projections_follow_other_processes),
        (Bug::TrustLeftRows, rules::keys_written_before_the_state_is_read_again),
        (Bug::ReclaimLeased, splits::a_lease_keeps_what_it_shows),
        (Bug::PurgeBesideHolds, splits::a_purge_ends_what_others_have),
        (Bug::TrustBeats, splits::silence_ends_a_lease),
        (Bug::SweepHolds, staged::staged_blocks_are_spared),
        (Bug::TrustEndedHolds, staged::ended_jobs_are_not_committed),
        (Bug::ForgetJobs, staged::a_job_is_done_once),
        (Bug::SkipStagedKeys, staged::keys_are_unique_among_parts),
        (Bug::KeepDeleted, evolve::keys_renamed_before_a_restore_are_found),
        (Bug::RestorePart, copies::a_restored_version_is_the_old_one),
        (Bug::CopyInMemory, copies::rows_in_memory_go_along),
        (Bug::ForgetMovedRetention, copies::moved_tables_keep_their_retention),
        (Bug::ForgetMovedPins, copies::moved_tables_keep_their_snapshots),
        (Bug::KeepCovered, covers::tables_leave_what_covers_them),
        (Bug::MixShared, copies::shared_row_groups_are_kept_once),
        (Bug::OneSchemaRestored, evolve::versions_of_mixed_row_groups_are_restored),
        (Bug::ColumnsByName, evolve::names_are_swapped),
        (Bug::ReuseColumns, evolve::a_new_column_is_not_the_old_one),
        (Bug::AlterInMemory, evolve::rows_in_memory_go_along),
        (Bug::ReviveRows, updates::deleted_rows_stay_deleted),
        (Bug::InsertMatched, merges::rows_that_match_are_not_added),
        (Bug::IgnoreOtherKeys, merges::rows_of_other_keys_are_refused),
        (Bug::ForgetAncestors, erasing::nothing_is_left),
        (Bug::PurgeNewestOnly, erasing::nothing_is_left),
        (Bug::LeaveHoles, erasing::nothing_is_left),
        (Bug::ScanOnPurged, erasing::scans_end),
        (Bug::ReplaceBesideKeys, replacing::keys_of_rows_that_stay_are_refused),
        (Bug::PassOverOthers, copy_to::what_shows_something_else_is_refused),
        (Bug::SkipChecks, constraints::no_call_breaks_a_check),
        (Bug::TrustRows, constraints::rows_that_are_there_keep_them),
        (Bug::ForgetConstraints, constraints::replaced_rows_keep_them),
        (Bug::ForgetOrder, evolve::columns_of_the_order_are_renamed),
        (Bug::RoundSums, aggregates::answers_do_not_depend_on_how_rows_lie),
        (Bug::RankParts, aggregates::answers_do_not_depend_on_how_rows_lie),
        (Bug::CompleteBlindly, partial::completed_rows_are_read_again),
        (Bug::ForgetBelow, patches::what_lies_below_is_kept),
        (Bug::ReadBelow, patches::the_newest_values_are_read),
        (Bug::MixSchemas, patches::older_versions_keep_their_columns),
        (Bug::PurgePatches, patches::purges_reach_below),
        (Bug::ForgetStories, stories::stories_outlive_the_log),
        (Bug::TellAll, stories::what_one_says_is_not_said_of_others),
        (Bug::DiffRecords, diffs::only_what_differs_is_read),
        (Bug::DoubtRefusals, shared_faults::sleeper_in_a_folder),
        // On a busy machine threads seldom take turns as it needs.
        (Bug::KeepPages, || (0..20).try_for_each(|_| pages::writes_beside_checkpoints_stay())),
        (Bug::ForgetDue, || pages::run(0)),
        (Bug::ForgetWaiting, pages::what_a_vacuum_would_change_is_known),
        (Bug::IgnoreGrace, rules::grace_is_given),
        (Bug::CopyUnread, following::damaged_at_the_source),
        (Bug::KeepErased, replicas::erased::purged),
        (Bug::CutLeased, following::cut_while_leased),
        (Bug::AppendFirst, cut_off::crash_with_news),
        (Bug::NoOwner, cut_off::two_processes),
        (Bug::PromoteBeside, promotion::commits_beside),
        (Bug::ReturnUnfenced, moves::commits_beside_a_move_back),
        (Bug::TrustCell, moves::server_put_back),
        (Bug::TakeForbidden, offers::handed_in),
        (Bug::TakeTwice, offers::handed_in),
    ];
    for (bug, check) in single.into_iter().chain(HISTORIES) {
        check().unwrap();
        let begun = std::time::Instant::now();
        plant(Some(bug));
        // A check that panics has also noticed the bug.
        let noticed = !matches!(std::panic::catch_unwind(check), Ok(Ok(())));
        plant(None);
        assert!(noticed, "{bug:?} was not noticed");
        println!("{bug:?} noticed in {} ms", begun.elapsed().as_millis());
    }
    broken_encoders_are_caught();
    println!("every planted bug was noticed");
}
