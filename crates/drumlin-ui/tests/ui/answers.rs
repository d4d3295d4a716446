//! What the page gets: of the tree, tables, rows, charts, differences, the layout and the log.

use std::io::Cursor;

use drumlin::arrow::array::{Array, AsArray, RecordBatch};
use drumlin::arrow::compute::concat_batches;
use drumlin::arrow::datatypes::Float64Type;
use drumlin::arrow::ipc::reader::StreamReader;
use drumlin::{AsOf, Missing, Retention, Store, TableOptions, Tables, Version};
use serde_json::json;

use super::client::{Shown, rows, show, shown};

/// The rows of an answer.
fn table(shown: &Shown, target: &str) -> RecordBatch {
    let answer = shown.get(target);
    assert_eq!(answer.status, 200, "{target}: {}", answer.text());
    let reader = StreamReader::try_new(Cursor::new(answer.body), None).unwrap();
    let schema = reader.schema();
    concat_batches(&schema, &reader.map(Result::unwrap).collect::<Vec<_>>()).unwrap()
}

fn texts(rows: &RecordBatch, column: &str) -> Vec<String> {
    let column = rows.column_by_name(column).unwrap().as_string::<i32>();
    (0..column.len()).map(|row| column.value(row).to_owned()).collect()
}

#[test]
fn the_tree_is_filtered_folded_and_read_in_parts() {
    let shown = shown(false);
    let paths = |target: &str| {
        let listed = shown.get(target).json();
        let nodes = listed["nodes"].as_array().unwrap().clone();
        nodes.iter().map(|node| node["path"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let all = ["prices", "prices/us", "prices/us/AAPL", "prices/us/MSFT"];
    assert_eq!(paths("/api/tree"), all);
    assert_eq!(paths("/api/tree?folded=prices/us"), all[..2]);
    assert_eq!(paths("/api/tree?fold=all"), all[..1]);
    assert_eq!(paths("/api/tree?fold=all&unfolded=prices&unfolded=prices/us"), all);
    let at = |target: &str| shown.get(target).json()["at"].clone();
    assert_eq!(
        [at("/api/tree?at=prices/us/MSFT"), at("/api/tree?fold=all&at=prices/us/MSFT")],
        [json!(3), json!(null)]
    );
    assert_eq!(paths("/api/tree?filter=msf"), ["prices", "prices/us", "prices/us/MSFT"]);
    assert_eq!(paths("/api/tree?filter=none"), [""; 0]);
    assert_eq!(paths("/api/tree?offset=2&limit=1"), ["prices/us/AAPL"]);
    let listed = shown.get("/api/tree").json();
    assert_eq!(
        (&listed["total"], &listed["nodes"][0]["tables"], &listed["nodes"][2]["rows"]),
        (&json!(4), &json!(2), &json!(1500))
    );
    assert!(listed["nodes"][2]["bytes"].as_u64().unwrap() > 1000);
    shown.store.write("prices/us/NVDA", rows(0, 1), &Default::default()).unwrap();
    assert_eq!(paths("/api/tree?filter=nvda").len(), 3, "a commit makes the list a new one");
}

#[test]
fn rows_are_read_by_range_filter_version_and_order() {
    let shown = shown(false);
    let of = "/api/rows?path=prices/us/AAPL";
    assert_eq!(texts(&table(&shown, &format!("{of}&offset=1200&limit=2")), "n"), ["1200", "1201"]);
    let filtered = table(&shown, &format!("{of}&where=n%20%25%202%20%3D%200&offset=3&limit=2"));
    assert_eq!(texts(&filtered, "n"), ["6", "8"]);
    assert_eq!(table(&shown, &format!("{of}&as_of=0&offset=990&limit=100")).num_rows(), 10);
    assert_eq!(texts(&table(&shown, &format!("{of}&sort=text&descending=1&limit=2")), "text"), ["row 999", "row 998"]);
    assert_eq!(texts(&table(&shown, &format!("{of}&sort=half&offset=1499&limit=5")), "n"), ["1499"]);
    assert_eq!(table(&shown, &format!("{of}&column=half&limit=3")).num_columns(), 1);
    assert_eq!(table(&shown, &format!("{of}&where=n%20%3C%200")).schema().fields().len(), 3, "no row, but all columns");
    let one = table(&shown, &format!("{of}&limit=1"));
    assert_eq!(one.schema().field(0).metadata()["type"], "int64");
    assert_eq!(shown.get("/api/count?path=prices/us/AAPL").json()["rows"], 1500);
    assert_eq!(shown.get("/api/count?path=prices/us/AAPL&where=n%3E1000").json()["rows"], 499);
    let wrong = shown.get(&format!("{of}&where=nonsense%20%3E"));
    assert_eq!(wrong.status, 400);
    assert!(!wrong.json()["error"]["message"].as_str().unwrap().is_empty());
    let cell = shown.get("/api/cell?path=prices/us/AAPL&row=1234&of=text").json();
    assert_eq!(cell, json!({ "value": "row 1234", "type": "string" }));
    let cell = shown.get("/api/cell?path=prices/us/AAPL&row=0&of=n&sort=n&descending=1").json();
    assert_eq!(cell["value"], "1499");
}

#[test]
fn a_chart_has_the_least_the_greatest_and_the_mean_of_each_bucket() {
    let shown = shown(false);
    let chart = shown.get("/api/chart?path=prices/us/AAPL&x=n&y=half&buckets=10").json();
    assert_eq!((&chart["x"]["low"], &chart["x"]["high"], &chart["rows"]), (&json!(0.0), &json!(1499.0), &json!(1500)));
    let all = shown.store.table("prices/us/AAPL").collect(&Default::default()).unwrap();
    let halves: Vec<f64> = all
        .iter()
        .flat_map(|batch| batch.column_by_name("half").unwrap().as_primitive::<Float64Type>().values().to_vec())
        .collect();
    let buckets = chart["buckets"].as_array().unwrap();
    let mut at = 0;
    for bucket in buckets {
        let count = bucket[1].as_u64().unwrap() as usize;
        let values = &halves[at..at + count];
        let mean = values.iter().sum::<f64>() / count as f64;
        assert_eq!((&bucket[2], &bucket[3]), (&json!(values[0]), &json!(values[count - 1])));
        assert!((bucket[4].as_f64().unwrap() - mean).abs() < 1e-9);
        at += count;
    }
    assert_eq!((at, buckets.len()), (1500, 10));
    let by_row = shown.get("/api/chart?path=prices/us/AAPL&y=n&buckets=3&where=n%3C30").json();
    assert_eq!(
        by_row["buckets"].as_array().unwrap().iter().map(|b| b[1].as_u64().unwrap()).collect::<Vec<_>>(),
        [10, 10, 10]
    );
    assert_eq!(shown.get("/api/chart?path=prices/us/AAPL&x=text&y=n").status, 400);
    assert_eq!(shown.get("/api/chart?path=prices/us/AAPL&y=n&where=n%3C0").json()["buckets"], json!([]));
}

#[test]
fn versions_differences_and_metadata_are_told() {
    let shown = shown(false);
    let versions = shown.get("/api/versions?path=prices/us/AAPL").json();
    let newest = &versions["versions"][0];
    assert_eq!(
        (&newest["kind"], &newest["added"], &newest["message"]),
        (&json!("append"), &json!(500), &json!("more of it"))
    );
    let rows = table(&shown, "/api/diff?path=prices/us/AAPL&since=0&until=1&limit=1000");
    assert_eq!((rows.num_rows(), texts(&rows, "_change")[0].as_str()), (500, "insert"));
    let first = shown.get("/api/diff?path=prices/us/AAPL&since=0&until=1&limit=10");
    assert_eq!(first.header("x-drumlin-more"), Some("1"));
    let info = shown.get("/api/table?path=prices/us/AAPL").json();
    assert_eq!(
        (&info["rows"], &info["columns"][1]["type"], &info["columns"][1]["kind"]),
        (&json!(1500), &json!("double"), &json!("number"))
    );
}

#[test]
fn comparing_changes_nothing_even_if_rows_are_in_memory() {
    let store = Store::memory().unwrap();
    let key = TableOptions { key: vec!["n".into()], ..TableOptions::default() };
    store.table("k").create(rows(0, 1).schema(), key).unwrap();
    store.table("k").upsert(rows(0, 10), &Default::default()).unwrap();
    let shown = show(store, false);
    let before = shown.store.seq().unwrap();
    let answer = shown.get("/api/diff?path=k&since=0");
    assert_eq!(answer.status, 409, "{}", answer.text());
    assert!(answer.text().contains("checkpoint"));
    assert_eq!(shown.store.seq().unwrap(), before);
    assert_eq!(shown.get("/api/count?path=k").json()["rows"], 10);
}

#[test]
fn the_layout_has_a_cell_for_each_row_group() {
    let shown = shown(false);
    shown.store.table("prices/us/AAPL").delete("n < 600", &Default::default()).unwrap();
    shown.store.delete_versions(&[("prices/us/AAPL".into(), vec![Version(0), Version(1)])], Missing::Refuse).unwrap();
    let layout = shown.get("/api/layout").json();
    let cells: Vec<_> =
        layout["blocks"].as_array().unwrap().iter().flat_map(|b| b["cells"].as_array().unwrap()).collect();
    assert_eq!(cells.len(), 3);
    assert_eq!(cells.iter().map(|cell| cell[5].as_u64().unwrap()).sum::<u64>(), 600);
    assert!(cells.iter().any(|cell| cell[11] == "fold"));
    let one = shown.get("/api/layout?path=prices/us/MSFT").json();
    assert_eq!(one["tables"].as_array().unwrap().len(), 1);
}

#[test]
fn the_log_tells_of_commits_and_the_rest_of_activity() {
    let shown = shown(false);
    shown.store.snapshot("eod", "**").unwrap();
    shown.store.table("prices/us/MSFT").drop(Missing::Refuse).unwrap();
    shown.store.tree().put("config/a", drumlin::Payload::from(7)).unwrap();
    let commits = shown.get("/api/commits").json();
    let told = commits["commits"].as_array().unwrap();
    let all: Vec<_> = told.iter().flat_map(|commit| commit["events"].as_array().unwrap()).collect();
    assert!(all.iter().any(|event| event["action"] == "drop" && event["path"] == "prices/us/MSFT"));
    assert!(all.iter().any(|event| event["path"] == "config/a" && event["payload"] == "7"));
    let since = commits["seq"].as_u64().unwrap();
    assert_eq!(shown.get(&format!("/api/commits?since={since}")).json()["commits"], json!([]));
    shown.store.checkpoint(&Default::default()).unwrap();
    let after = shown.get("/api/commits?since=0").json();
    assert!(after["commits"].as_array().is_some(), "{after}");
    let presence =
        shown.store.tree().presence(&drumlin::PresenceOptions { name: "worker 7".into(), ..Default::default() });
    let on = drumlin::PutOptions { presence: Some(presence.as_ref().unwrap().number()), ..Default::default() };
    shown.store.tree().put_with("config/mine", 8, on).unwrap();
    assert_eq!(shown.get("/api/node?path=config/mine").json()["presence"], 1);
    let activity = shown.get("/api/activity").json();
    assert_eq!(activity["presences"]["items"][0]["name"], "worker 7");
    assert_eq!(activity["snapshots"]["items"][0]["tables"], 2);
    assert_eq!(activity["trash"]["items"][0]["path"], "prices/us/MSFT");
    assert_eq!(shown.get("/api/node?path=config/a").json()["payload"], "7");
    let held = table(&shown, "/api/rows?path=prices/us/AAPL&as_of=snapshot%3Aeod&limit=1");
    assert_eq!(held.num_rows(), 1);
}

#[test]
fn metrics_are_told_to_the_page_and_to_prometheus() {
    let shown = shown(false);
    let metrics = shown.get("/api/metrics").json();
    let tables =
        metrics["metrics"].as_array().unwrap().iter().find(|metric| metric["name"] == "drumlin_tables").unwrap();
    assert_eq!((&tables["value"], &tables["kind"]), (&json!(2), &json!("gauge")));
    let named =
        |name: &str| metrics["metrics"].as_array().unwrap().iter().find(|metric| metric["name"] == name).cloned();
    let turns = named("drumlin_commit_seconds").unwrap();
    assert!(turns["kind"] == "durations" && turns["mean"].as_f64().unwrap() > 0.0, "{turns}");
    assert!(named("drumlin_storage_requests_total{kind=\"get\"}").is_some());
    let text = shown.get("/metrics");
    assert!(text.header("content-type").unwrap().starts_with("text/plain; version=0.0.4"));
    assert!(text.text().contains("# TYPE drumlin_tables gauge\ndrumlin_tables 2\n"));
}

#[test]
fn a_closed_store_is_said_to_be_closed() {
    let shown = shown(false);
    assert!(shown.store.table("prices/us/AAPL").schema(&AsOf::Newest).is_ok());
    shown.store.close().unwrap();
    let answer = shown.get("/api/store");
    assert_eq!((answer.status, &answer.json()["error"]["kind"]), (503, &json!("Closed")));
}

/// What the log tells, a line an event.
fn told(shown: &Shown) -> Vec<String> {
    let commits = shown.get("/api/commits").json();
    let events = commits["commits"].as_array().unwrap().iter().flat_map(|commit| commit["events"].as_array().unwrap());
    let text = |value: &serde_json::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let parts = ["action", "path", "told", "tables"];
    let lines = events.map(|event| parts.map(|part| text(&event[part])).join(" "));
    lines.map(|line| line.replace(" null", "")).collect()
}

#[test]
fn the_log_names_snapshots_and_retentions() {
    let shown = shown(false);
    shown.store.snapshot("eod", "prices/us/MSFT").unwrap();
    shown.store.snapshot("all", "**").unwrap();
    shown.store.set_retention("prices/us", Some(Retention::KeepLast(3))).unwrap();
    shown.store.set_retention("new/deep", Some(Retention::KeepMicros(7_200_000_000))).unwrap();
    let named = [
        "snapshot eod 1",
        "snapshot all 2",
        "retention prices/us keeps the last 3 versions",
        "retention new/deep keeps versions of the last 2 hours",
    ];
    let settings =
        |lines: Vec<String>| lines.into_iter().filter(|line| line.contains("snapshot") || line.contains("ret"));
    assert_eq!(settings(told(&shown)).collect::<Vec<_>>(), named);
    shown.store.drop_snapshot("eod").unwrap();
    assert_eq!(settings(told(&shown)).collect::<Vec<_>>(), [&named[..], &["drop snapshot eod"]].concat());
    shown.store.set_retention("**", Some(Retention::KeepLast(1))).unwrap();
    let lines = settings(told(&shown)).collect::<Vec<_>>();
    assert_eq!(lines[5..], ["retention ** keeps the last version"]);
    shown.store.drop_snapshot("all").unwrap();
    shown.store.set_retention("prices/us", None).unwrap();
    let lines = settings(told(&shown)).collect::<Vec<_>>();
    assert_eq!(lines[6..], ["drop snapshot all", "retention prices/us as above"]);
}

#[test]
fn the_facts_of_a_table_are_those_of_the_version_asked_for() {
    let shown = shown(false);
    let of = "/api/table?path=prices/us/AAPL";
    let [newest, first] = ["", "&as_of=0"].map(|as_of| shown.get(&format!("{of}{as_of}")).json());
    assert_eq!([&newest["rows"], &first["rows"]], [&json!(1500), &json!(1000)]);
    assert_eq!([&newest["row_groups"], &first["row_groups"]], [&json!(2), &json!(1)]);
    let bytes = |told: &serde_json::Value| told["bytes"].as_u64().unwrap();
    assert!(0 < bytes(&first) && bytes(&first) < bytes(&newest));
    assert_eq!(bytes(&shown.get(&format!("{of}&as_of=1")).json()), bytes(&newest));
}

#[test]
fn those_with_the_token_learn_that_a_table_is_gone() {
    let shown = shown(false);
    let of = "/api/whereabouts?path=prices/us/MSFT";
    assert_eq!(shown.get(of).json(), json!({ "exists": true, "dropped": null }));
    shown.store.table("prices/us/MSFT").drop(Missing::Refuse).unwrap();
    let gone = shown.get(of).json();
    assert_eq!((&gone["exists"], gone["dropped"].is_string()), (&json!(false), true));
    assert_eq!(shown.ask("GET", of, "", "").status, 401);
}
