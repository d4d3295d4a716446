//! The tree's benchmark: Khepri's workload, with its published times, and ours up to a million nodes.
//!
//! `cargo bench --bench tree`, or `make bench`. Durable: a store on disk, one sync per commit.

#![expect(clippy::disallowed_methods, reason = "a benchmark takes the time")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use drumlin::catalog::{Field, Pattern, Payload, Projection, TriggerFilter};
use drumlin::{Result, Store, Tables};

/// Seconds that Khepri 0.18.0 took for one transaction on 50,000 nodes with one projection.
const KHEPRI: [(&str, f64, f64); 3] =
    [("puts", 0.49, 10.0), ("single deletes", 0.39, 15.0), ("pattern delete", 0.51, 15.0)];
const ROUNDS: usize = 5;

fn payload(n: usize) -> Payload {
    Payload::json(&serde_json::json!({"type": "direct", "durable": n.is_multiple_of(2)})).unwrap()
}

fn paths(n: usize) -> Vec<String> {
    (0..n).map(|n| format!("rabbitmq/vhosts/v/exchanges/e{n}")).collect()
}

fn field(text: &str) -> Field {
    Field::new(text).unwrap()
}

fn project(store: &Store, projections: usize, triggers: usize) -> Result<Arc<AtomicU64>> {
    let pattern = || Pattern::new("rabbitmq/vhosts/*/exchanges/*");
    for (name, key, bag) in [("by name", "name", false), ("by type", "payload.type", true), ("by path", "path", false)]
        .into_iter()
        .take(projections)
    {
        let (key, value) = (vec![field(key)], vec![field("payload")]);
        store.tree().put_projection(name, Projection { pattern: pattern()?, key, value, bag })?;
    }
    let calls = Arc::new(AtomicU64::new(0));
    for _ in 0..triggers {
        let calls = calls.clone();
        let filter = TriggerFilter { pattern: pattern()?, actions: Vec::new(), priority: 0 };
        store.tree().on(
            filter,
            Arc::new(move |_| {
                calls.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }),
        )?;
    }
    Ok(calls)
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

struct Times {
    puts: f64,
    single: f64,
    pattern: f64,
}

/// One transaction each, in seconds.
fn transactions(n: usize, projections: usize, triggers: usize) -> Result<Times> {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open_with(folder.path().join("s").to_str().unwrap(), Default::default())?;
    let calls = project(&store, projections, triggers)?;
    let (paths, payloads) = (paths(n), [payload(0), payload(1)]);
    let (mut puts, mut single, mut pattern) = (Vec::new(), Vec::new(), Vec::new());
    let put = || -> Result<f64> {
        let start = Instant::now();
        store.transact(|tx| {
            for (n, path) in paths.iter().enumerate() {
                tx.tree().put(path, payloads[n % 2].clone())?;
            }
            Ok::<_, drumlin::Error>(())
        })?;
        Ok(start.elapsed().as_secs_f64())
    };
    let rounds = if n > 100_000 { 3 } else { ROUNDS };
    for _ in 0..rounds {
        puts.push(put()?);
        store.tree().wait_for_triggers(None)?;
        let start = Instant::now();
        store.transact(|tx| {
            for path in &paths {
                tx.tree().delete(path, None)?;
            }
            Ok::<_, drumlin::Error>(())
        })?;
        single.push(start.elapsed().as_secs_f64());
        assert_eq!(store.tree().count("**")?, 0);
        store.tree().wait_for_triggers(None)?;
        puts.push(put()?);
        store.tree().wait_for_triggers(None)?;
        let start = Instant::now();
        let changes = store.tree().delete_many("rabbitmq/vhosts/v/exchanges/*")?;
        pattern.push(start.elapsed().as_secs_f64());
        assert_eq!(changes.len(), n);
        store.tree().wait_for_triggers(None)?;
    }
    assert_eq!(calls.load(Ordering::Relaxed), (triggers * n * rounds * 4) as u64);
    Ok(Times { puts: median(puts), single: median(single), pattern: median(pattern) })
}

fn against_khepri() -> Result<()> {
    println!("\n## One transaction on 50,000 nodes, one projection; Khepri's times as published in 0.18.0\n");
    println!("| operation | Khepri s | Drumlin s | times as fast | wanted |\n|---|---|---|---|---|");
    let ours = transactions(50_000, 1, 0)?;
    for ((name, khepri, wanted), ours) in KHEPRI.into_iter().zip([ours.puts, ours.single, ours.pattern]) {
        println!("| {name} | {khepri:.2} | {ours:.4} | {:.1} | {wanted} |", khepri / ours);
    }
    Ok(())
}

fn growth() -> Result<()> {
    println!("\n## One transaction, 3 projections and 3 triggers: microseconds a node\n");
    println!("| nodes | puts | single deletes | pattern delete |\n|---|---|---|---|");
    for n in [50_000, 200_000, 1_000_000] {
        let times = transactions(n, 3, 3)?;
        let each = |seconds: f64| seconds / n as f64 * 1e6;
        println!("| {n} | {:.2} | {:.2} | {:.2} |", each(times.puts), each(times.single), each(times.pattern));
    }
    Ok(())
}

fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * 4096
}

/// Memory of a node, opening, and look-ups while all are deleted.
fn million() -> Result<()> {
    const N: usize = 1_000_000;
    let folder = tempfile::tempdir().unwrap();
    let uri = folder.path().join("s");
    let uri = uri.to_str().unwrap();
    let store = Store::open_with(uri, Default::default())?;
    let paths = paths(N);
    store.transact(|tx| {
        for (n, path) in paths.iter().enumerate() {
            tx.tree().put(path, payload(n))?;
        }
        Ok::<_, drumlin::Error>(())
    })?;
    store.close()?;
    drop(store);
    println!("\n## 1,000,000 nodes\n");
    let open = |what: &str| -> Result<Store> {
        let start = Instant::now();
        let store = Store::open_with(uri, Default::default())?;
        println!("- open, {what}: {:.2} s (under 2 wanted)", start.elapsed().as_secs_f64());
        Ok(store)
    };
    open("from the log")?.checkpoint(&Default::default())?;
    // In a separate process, whose memory has not been used for anything else.
    let myself = std::env::current_exe().unwrap();
    let measured = std::process::Command::new(myself).args(["memory", uri]).output().unwrap();
    print!("{}", String::from_utf8_lossy(&measured.stdout));
    let store = open("from a catalog snapshot")?;

    let start = Instant::now();
    let step = 7919;
    (0..N).for_each(|n| assert!(store.tree().get(&paths[n * step % N]).unwrap().is_some()));
    println!("- get: {:.2} million a second (Khepri 0.2)", N as f64 / start.elapsed().as_secs_f64() / 1e6);
    let start = Instant::now();
    assert_eq!(store.tree().get_many("rabbitmq/vhosts/v/exchanges/e1????")?.len(), 10_000);
    println!("- get_many of 10,000 by pattern: {:.4} s", start.elapsed().as_secs_f64());
    project(&store, 1, 0)?;
    let view = store.tree().projection("by name")?;
    let start = Instant::now();
    let keys: Vec<Payload> =
        (0..100_000).map(|n| Payload::try_from(format!("e{}", n * step % N).as_str()).unwrap()).collect();
    let keyed = start.elapsed();
    keys.iter().for_each(|key| assert!(view.get(std::slice::from_ref(key)).unwrap().is_some()));
    let seconds = (start.elapsed() - keyed).as_secs_f64();
    println!("- projection look-ups: {:.2} million a second (Khepri 1 to 2)", 0.1 / seconds);
    store.tree().drop_projection("by name")?;

    let stop = Arc::new(AtomicBool::new(false));
    let looked = Arc::new(AtomicU64::new(0));
    let rate = |seconds: f64| looked.swap(0, Ordering::SeqCst) as f64 / seconds / 1e6;
    let reader = {
        let (store, stop, looked, paths) = (store.clone(), stop.clone(), looked.clone(), paths.clone());
        std::thread::spawn(move || {
            let snapshot = drumlin::Transaction::read_only(&store).unwrap();
            let mut n = 0;
            while !stop.load(Ordering::Relaxed) {
                n = (n + step) % N;
                assert!(snapshot.tree().get(&paths[n]).unwrap().is_some());
                looked.fetch_add(1, Ordering::Relaxed);
            }
        })
    };
    std::thread::sleep(Duration::from_millis(300));
    rate(1.0);
    let start = Instant::now();
    std::thread::sleep(Duration::from_millis(500));
    let alone = rate(start.elapsed().as_secs_f64());
    let start = Instant::now();
    store.tree().delete_many("rabbitmq/**")?;
    let seconds = start.elapsed().as_secs_f64();
    let beside = rate(seconds);
    stop.store(true, Ordering::SeqCst);
    reader.join().unwrap();
    println!(
        "- look-ups on a snapshot: {alone:.2} million a second alone, {beside:.2} while all nodes are deleted ({seconds:.2} s)"
    );
    Ok(())
}

fn clients() -> Result<()> {
    const CLIENTS: usize = 32;
    const SECONDS: f64 = 2.0;
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open_with(folder.path().join("s").to_str().unwrap(), Default::default())?;
    let start = Instant::now();
    let done: u64 = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let store = &store;
                scope.spawn(move || {
                    let mut done = 0_u64;
                    while start.elapsed().as_secs_f64() < SECONDS {
                        store.tree().put(&format!("c/{client}/{}", done % 1000), Payload::from(done as i64)).unwrap();
                        done += 1;
                    }
                    done
                })
            })
            .collect();
        clients.into_iter().map(|client| client.join().unwrap()).sum()
    });
    let seconds = start.elapsed().as_secs_f64();
    println!("\n## {CLIENTS} threads, one durable put a commit\n");
    println!(
        "- {:.0} puts a second (Khepri 16,000 to 26,000), {:.1} puts for each sync, {:.0} syncs a second",
        done as f64 / seconds,
        done as f64 / store.seq()?.0 as f64,
        store.seq()?.0 as f64 / seconds
    );
    Ok(())
}

/// The memory of a node when a store is opened, including what opening left behind.
fn memory(uri: &str) -> Result<()> {
    let before = resident();
    let store = Store::open_with(uri, Default::default())?;
    let nodes = store.stat()?.nodes;
    println!("- memory: {} bytes a node (at most 300 wanted)", resident().saturating_sub(before) / nodes);
    Ok(())
}

fn main() -> Result<()> {
    if let [_, part, uri] = &std::env::args().collect::<Vec<_>>()[..]
        && part == "memory"
    {
        return memory(uri);
    }
    let parts: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    let run = |name: &str, part: fn() -> Result<()>| {
        if parts.is_empty() || parts.iter().any(|wanted| wanted == name) { part() } else { Ok(()) }
    };
    run("khepri", against_khepri)?;
    run("growth", growth)?;
    run("million", million)?;
    run("clients", clients)
}
