//! `follow`, `promote`, `clone`: a second store that has every commit of a first one, what takes its place, and whole copies.

use std::io::Write;
use std::sync::{Arc, mpsc};

use clap::Args;
use drumlin::{
    CaughtUp, CloneAt, Mode, PromoteOptions, ReplicateOptions, ReplicateReport, clone_store, promote, replicate,
};
use serde_json::{Value, json};

use crate::bar::Bar;
use crate::failure::{Failure, Outcome};
use crate::figures::{bytes, counted, parse_pause, parse_span};
use crate::interrupt;
use crate::output::Output;
use crate::place::{Place, TargetOptions};

/// Keep a replica of a store: a second store that has every commit of the first one, in order
///
/// Makes the replica if nothing is at TARGET, brings over what is committed, and goes on until interrupted; the same command continues.
/// The replica can be read at any time, and is some commit of STORE, whole. Nobody else can write it until it is promoted.
///
/// Where many processes write STORE, a lease there keeps what the replica still needs; it is a commit about once a minute.
/// Prints a line each time that the replica has caught up with news.
#[derive(Args)]
#[command(after_help = "\
Examples:
  drumlin follow market.drumlin s3://backup/market
  drumlin follow market.drumlin /mnt/other/market.drumlin --once")]
pub struct Follow {
    #[command(flatten)]
    place: Place,
    /// Where the replica is, or goes: a folder, or s3://bucket/prefix (gs://, az://)
    #[arg(value_name = "TARGET")]
    target: String,
    /// Return once the replica has caught up
    #[arg(long)]
    once: bool,
    /// How often to look for news, such as 500ms or 10s
    #[arg(long, value_name = "SPAN", default_value = "500ms", value_parser = parse_pause)]
    poll: u64,
    /// Do not open a lease: what is reclaimed before it was brought over is passed by, and the newest state is copied instead
    #[arg(long)]
    no_lease: bool,
    /// Keep what leaves the replica for this long, such as 30d, so that `clone` restores each commit of that time [default: as in the
    /// command before; at first, nothing is kept]
    #[arg(long, value_name = "SPAN", value_parser = parse_span)]
    keep_log: Option<u64>,
    /// In a bucket, also delete what killed commands have left; no other process may keep the same replica then
    #[arg(long)]
    sweep: bool,
    #[command(flatten)]
    options: TargetOptions,
    /// Print JSON, with exact numbers
    #[arg(long)]
    json: bool,
}

/// Make a replica a store of its own, and end the store that it follows
///
/// First the source is ended, so that nobody can commit there; then what it had is brought over, and the replica gets an id of its own.
/// If the source is gone for good, --lost gives it up: then it may have commits that the replica lacks, and may still be written.
///
/// A store that was ended is promoted to be written again, too.
#[derive(Args)]
#[command(after_help = "\
Examples:
  drumlin promote s3://backup/market
  drumlin promote s3://backup/market --lost")]
pub struct Promote {
    #[command(flatten)]
    place: Place,
    /// The source is gone or cannot be reached: do not end it
    #[arg(long, conflicts_with = "source")]
    lost: bool,
    /// Where the source is [default: where the replica followed it]
    #[arg(long, value_name = "STORE")]
    source: Option<String>,
    /// As --storage-option, for the source
    #[command(flatten)]
    options: TargetOptions,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Copy a whole store: all tables, versions, snapshots, nodes and the trash, as of one commit
///
/// It reaches back as far as the log of STORE, which a checkpoint cuts; from a replica that keeps its log (`follow --keep-log 30d`), each
/// commit of that time can be restored. The copy is a store of its own. If the command is cut off, the same command continues. To copy some tables, see `copy-to`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  drumlin clone market.drumlin /mnt/backup/market.drumlin
  drumlin clone replica.drumlin restored.drumlin --as-of 2026-03-01T17:00:00Z")]
pub struct CloneStore {
    #[command(flatten)]
    place: Place,
    /// Where the copy goes: a folder that is empty or does not exist, or s3://bucket/prefix (gs://, az://)
    #[arg(value_name = "NEW")]
    new: String,
    /// A commit's number, or a time [default: the newest commit]
    #[arg(long, value_name = "COMMIT", value_parser = parse_at)]
    as_of: Option<CloneAt>,
    #[command(flatten)]
    options: TargetOptions,
    /// Print JSON, with exact numbers
    #[arg(long)]
    json: bool,
}

impl Follow {
    /// Brings over what is committed.
    pub fn run(self, out: &mut Output) -> Outcome {
        let bar = Bar::new("copying blocks", 0);
        let cancel = interrupt::listen();
        let (caught_up, reports) = mpsc::channel();
        let options = ReplicateOptions {
            once: self.once,
            poll_micros: self.poll,
            lease: !self.no_lease,
            keep_log_micros: self.keep_log,
            sweep: self.sweep,
            source: self.place.options(Mode::Read),
            target: self.options.options(),
            caught_up: (!self.once).then(|| {
                Arc::new(move |report: &ReplicateReport| {
                    let _ = caught_up.send(report.clone());
                }) as CaughtUp
            }),
            task: bar.task_counting(&cancel, "block"),
        };
        // Standard output is this thread's.
        std::thread::scope(|scope| {
            let (source, target) = (self.place.uri(), self.target.as_str());
            let replicating = scope.spawn(move || replicate(source, target, &options));
            let mut before = ReplicateReport::default();
            let mut printed = Ok(());
            for report in reports {
                printed = printed.and_then(|()| tell(&report, &before, self.json, out));
                if printed.is_err() {
                    cancel.cancel();
                }
                before = report;
            }
            bar.clear();
            let done = replicating.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            printed?;
            let report = done.map_err(|e| {
                Failure::from(e).or_interrupted("the replica is some commit, whole; the same command continues")
            })?;
            if self.once {
                tell(&report, &ReplicateReport::default(), self.json, out)?;
            }
            Ok(())
        })
    }
}

/// Prints what was brought over since `before`.
fn tell(report: &ReplicateReport, before: &ReplicateReport, json: bool, out: &mut Output) -> Result<(), Failure> {
    if json {
        writeln!(out, "{}", counts(report))?;
    } else {
        let whole = match report.whole - before.whole {
            0 => String::new(),
            n => format!("{} taken over as a whole, ", counted(n, "state")),
        };
        writeln!(
            out,
            "commit {}: {}, {whole}{}, {}",
            report.seq,
            counted(report.entries - before.entries, "commit"),
            counted(report.blocks - before.blocks, "block"),
            bytes(report.bytes - before.bytes),
        )?;
    }
    out.flush()?;
    Ok(())
}

fn counts(report: &ReplicateReport) -> Value {
    json!({
        "commit": report.seq, "commits": report.entries, "whole": report.whole, "blocks": report.blocks,
        "bytes": report.bytes,
    })
}

impl Promote {
    /// Promotes it.
    pub fn run(self, out: &mut Output) -> Outcome {
        let bar = Bar::new("copying blocks", 0);
        let task = bar.task_counting(&interrupt::listen(), "block");
        let (source, target) = (self.options.options(), self.place.options(Mode::Write));
        let replicate = ReplicateOptions { source, target, task, ..ReplicateOptions::default() };
        let options = PromoteOptions { lost: self.lost, source: self.source, replicate };
        let report = promote(self.place.uri(), &options);
        bar.clear();
        let report = report.map_err(|e| {
            Failure::from(e).or_interrupted("the source may have been ended; the same command continues")
        })?;
        if self.json {
            let id = format!("{:032x}", report.store);
            out.json(&json!({ "store": id, "commit": report.seq, "ended": report.ended }))?;
            return Ok(());
        }
        match &report.ended {
            Some(source) => writeln!(out, "{source} is ended, after commit {}", report.seq)?,
            None => writeln!(
                out,
                "it continues after commit {}; what it followed was not ended, and may have later commits",
                report.seq
            )?,
        }
        writeln!(out, "{} can be written now; it is store {:032x}", self.place.uri(), report.store)?;
        Ok(())
    }
}

impl CloneStore {
    /// Makes the copy.
    pub fn run(self, out: &mut Output) -> Outcome {
        let bar = Bar::new("copying blocks", 0);
        let task = bar.task_counting(&interrupt::listen(), "block");
        let (source, target) = (self.place.options(Mode::Read), self.options.options());
        let options = ReplicateOptions { source, target, task, ..ReplicateOptions::default() };
        let report = clone_store(self.place.uri(), &self.new, self.as_of.unwrap_or_default(), &options);
        bar.clear();
        let report = report
            .map_err(|e| Failure::from(e).or_interrupted("the copy is incomplete; the same command continues"))?;
        if self.json {
            let mut counts = counts(&report.copied);
            counts["store"] = format!("{:032x}", report.store).into();
            out.json(&counts)?;
        } else {
            writeln!(
                out,
                "{}, {} copied; {} ends with commit {}",
                counted(report.copied.blocks, "block"),
                bytes(report.copied.bytes),
                self.new,
                report.copied.seq,
            )?;
        }
        Ok(())
    }
}

fn parse_at(text: &str) -> Result<CloneAt, String> {
    CloneAt::parse(text).map_err(|e| e.to_string())
}
