//! Who gets nothing: those without the token, other sites, other names of this host; and that nobody can hold up the others.

use std::io::Write;
use std::thread;
use std::time::Duration;

use drumlin::{Missing, Store, Tables};

use super::client::{read, rows, show, shown};

/// Everything that tells of the store.
const TARGETS: [&str; 17] = [
    "/api/store",
    "/api/tree",
    "/api/node?path=prices",
    "/api/table?path=prices/us/AAPL",
    "/api/versions?path=prices/us/AAPL",
    "/api/rows?path=prices/us/AAPL",
    "/api/count?path=prices/us/AAPL",
    "/api/cell?path=prices/us/AAPL&row=0&of=n",
    "/api/chart?path=prices/us/AAPL&y=n",
    "/api/diff?path=prices/us/AAPL&since=0&until=1",
    "/api/layout",
    "/api/commits",
    "/api/activity",
    "/api/projection?name=none",
    "/api/metrics",
    "/metrics",
    "/api/",
];

#[test]
fn nothing_of_the_store_is_shown_without_the_token() {
    let shown = shown(true);
    let wrong = "0".repeat(shown.token.len());
    let half = &shown.token[..shown.token.len() / 2];
    for target in TARGETS {
        for header in [
            String::new(),
            format!("Authorization: Bearer {wrong}\r\n"),
            format!("Authorization: Bearer {half}\r\n"),
            format!("Authorization: Bearer {}0\r\n", shown.token),
            "Authorization: Bearer \r\n".to_owned(),
            format!("Authorization: Basic {}\r\n", shown.token),
            format!("Cookie: token={}\r\n", shown.token),
            format!("Authorization: Bearer {wrong}\r\n{}", shown.bearer()),
        ] {
            let answer = shown.ask("GET", target, &header, "");
            assert_eq!(answer.status, 401, "{target} {header}");
            assert!(!answer.text().contains("AAPL") && !answer.text().contains(&shown.token), "{}", answer.text());
        }
        let given = format!("{target}{}token={}", if target.contains('?') { "&" } else { "?" }, shown.token);
        assert_eq!(shown.ask("GET", &given, "", "").status, 401, "in the target, which logs and histories keep");
    }
    let post = shown.ask("POST", "/api/checkpoint", "Content-Type: application/json\r\n", "{}");
    assert_eq!(post.status, 401);
    let page = shown.ask("GET", "/", "", "");
    assert_eq!(page.status, 200, "the page itself holds nothing of the store");
    assert!(!page.text().contains("AAPL") && !page.text().contains(&shown.token));
}

#[test]
fn tokens_differ_and_are_long() {
    let (one, other) = (shown(false), shown(false));
    assert_ne!(one.token, other.token);
    assert_eq!(one.token.len(), 64);
    assert_eq!(one.ask("GET", "/api/store", &other.bearer(), "").status, 401);
}

#[test]
fn other_names_of_this_host_and_other_sites_are_refused() {
    let shown = shown(true);
    let port = shown.server.local().port();
    for host in ["evil.example", "evil.example:80", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example", "0.0.0.0", ""]
    {
        for target in ["/", "/api/store"] {
            let request =
                format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{}\r\n", shown.bearer());
            assert_eq!(shown.send(request.as_bytes()).status, 421, "{host} {target}");
        }
    }
    for host in [format!("localhost:{port}"), format!("[::1]:{port}"), format!("127.0.0.1:{port}")] {
        let request = format!("GET /api/store HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{}\r\n", shown.bearer());
        assert_eq!(shown.send(request.as_bytes()).status, 200, "{host}");
    }
    let twice = format!("GET / HTTP/1.1\r\nHost: {}\r\nHost: evil.example\r\nConnection: close\r\n\r\n", shown.host());
    assert_ne!(shown.send(twice.as_bytes()).status, 200);
    let none = "GET / HTTP/1.1\r\nConnection: close\r\n\r\n";
    assert_ne!(shown.send(none.as_bytes()).status, 200);
    let whole = format!("GET http://evil.example/ HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", shown.host());
    assert_ne!(shown.send(whole.as_bytes()).status, 200, "as a proxy is asked");
    let other = [
        "http://evil.example",
        "null",
        "https://127.0.0.1",
        &format!("https://127.0.0.1:{port}"),
        "http://127.0.0.1:1",
    ];
    for origin in other {
        let headers = format!("{}Origin: {origin}\r\nContent-Type: application/json\r\n", shown.bearer());
        assert_eq!(shown.ask("GET", "/api/store", &headers, "").status, 403, "{origin}");
        assert_eq!(shown.ask("POST", "/api/checkpoint", &headers, "{}").status, 403, "{origin}");
    }
    let own = format!("{}Origin: http://127.0.0.1:{port}\r\nSec-Fetch-Site: same-origin\r\n", shown.bearer());
    assert_eq!(shown.ask("GET", "/api/store", &own, "").status, 200);
    for site in ["cross-site", "same-site"] {
        let headers = format!("{}Sec-Fetch-Site: {site}\r\n", shown.bearer());
        assert_eq!(shown.ask("GET", "/api/store", &headers, "").status, 403, "{site}");
    }
    let asking = "Origin: http://evil.example\r\nAccess-Control-Request-Method: GET\r\n";
    let answer = shown.ask("OPTIONS", "/api/store", asking, "");
    assert!(answer.status >= 400 && answer.header("access-control-allow-origin").is_none());
}

#[test]
fn every_answer_forbids_inline_scripts_foreign_sources_and_frames() {
    let shown = shown(false);
    let answers =
        ["/", "/main.js", "/style.css", "/none", "/api/store", "/api/rows?path=prices/us/AAPL"].map(|t| shown.get(t));
    for answer in answers.iter().chain([&shown.ask("GET", "/api/store", "", ""), &shown.ask("PUT", "/", "", "")]) {
        let policy = answer.header("content-security-policy").unwrap();
        assert!(policy.contains("default-src 'none'") && policy.contains("script-src 'self'"), "{policy}");
        assert!(policy.contains("frame-ancestors 'none'") && policy.contains("base-uri 'none'"), "{policy}");
        assert!(!policy.contains("unsafe") && !policy.contains('*') && !policy.contains("http"), "{policy}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        assert_eq!(answer.header("referrer-policy"), Some("no-referrer"));
        assert_eq!(answer.header("access-control-allow-origin"), None);
    }
    let page = shown.get("/").text();
    assert!(!page.contains("<script>") && !page.contains(" style=") && !page.contains(" onload="), "{page}");
}

#[test]
fn no_file_of_the_disk_is_served() {
    let shown = shown(false);
    for target in [
        "/../Cargo.toml",
        "/../../../../../../../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/..%2f..%2fetc%2fpasswd",
        "/vendor/../../src/lib.rs",
        "//etc/passwd",
        "/.",
        "/vendor/",
        "/vendor",
        "/index.html/",
        "/index.html%00",
        "/api/../index.html",
        "/tsconfig.json",
        "/api/rows/../../etc/passwd",
    ] {
        let answer = shown.get(target);
        assert!([404, 400].contains(&answer.status), "{target}: {}", answer.status);
        assert!(!answer.text().contains("root:") && !answer.text().contains("[package]"), "{target}");
    }
    for path in ["../../etc/passwd", "/etc/passwd", "..%2F..%2Fetc%2Fpasswd", "%00", "prices%2F..%2Fprices"] {
        let answer = shown.get(&format!("/api/table?path={path}"));
        assert!([400, 404].contains(&answer.status), "{path}: {}", answer.text());
    }
}

#[test]
fn a_store_is_changed_only_by_a_post_with_the_token_on_a_server_that_may() {
    let reading = shown(false);
    reading.store.table("prices/us/MSFT").drop(Missing::Refuse).unwrap();
    let seq = reading.store.seq().unwrap();
    let undrop = r#"{"path": "prices/us/MSFT"}"#;
    assert_eq!(reading.post("/api/undrop", undrop).status, 403);
    assert_eq!(reading.post("/api/checkpoint", "{}").status, 403);
    TARGETS.iter().for_each(|target| drop(reading.get(target)));
    assert_eq!(reading.store.seq().unwrap(), seq, "reading changes nothing");

    let writing = shown(true);
    writing.store.table("prices/us/MSFT").drop(Missing::Refuse).unwrap();
    let seq = writing.store.seq().unwrap();
    assert_eq!(writing.get("/api/checkpoint").status, 404, "a change is no GET");
    assert_eq!(writing.get("/api/undrop?path=prices/us/MSFT").status, 404);
    assert_eq!(writing.ask("POST", "/api/undrop", &writing.bearer(), undrop).status, 415);
    let form = format!("{}Content-Type: text/plain\r\n", writing.bearer());
    assert_eq!(writing.ask("POST", "/api/undrop", &form, undrop).status, 415, "as a form of another site sends");
    assert_eq!(writing.ask("PUT", "/api/undrop", &writing.bearer(), undrop).status, 405);
    assert_eq!(writing.post("/api/undrop", "not JSON").status, 400);
    assert_eq!(writing.post("/api/undrop", "{}").status, 400);
    assert_eq!(writing.post("/api/store", "{}").status, 404);
    assert_eq!(writing.store.seq().unwrap(), seq);
    assert_eq!(writing.post("/api/undrop", undrop).json()["path"], "prices/us/MSFT");
    assert!(writing.store.table("prices/us/MSFT").exists().unwrap());
    let report = writing.post("/api/checkpoint", "{}").json();
    assert!(report["groups_before"].as_u64() > report["groups_after"].as_u64(), "{report}");
}

#[test]
fn sizes_of_requests_are_bounded() {
    let shown = shown(true);
    let long = "x".repeat(30_000);
    assert_eq!(shown.get(&format!("/api/rows?path={long}")).status, 414);
    let large = format!("{}X-Large: {}\r\n", shown.bearer(), "x".repeat(200_000));
    assert_ne!(shown.ask("GET", "/api/store", &large, "").status, 200);
    let many: String = (0..500).map(|n| format!("X-{n}: 1\r\n")).collect();
    assert_ne!(shown.ask("GET", "/api/store", &format!("{}{many}", shown.bearer()), "").status, 200);
    let body = format!("{{\"path\": \"{}\"}}", "x".repeat(200_000));
    assert_eq!(shown.post("/api/undrop", &body).status, 413);
    assert_eq!(shown.get("/api/rows?path=prices/us/AAPL&limit=1000000").status, 400);
    assert_eq!(shown.get("/api/tree?limit=1000000").status, 400);
    let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
    assert_eq!(shown.post("/api/undrop", &deep).status, 400);
    assert_eq!(shown.get("/api/store").status, 200);
}

#[test]
fn slow_clients_hold_nobody_up() {
    let shown = shown(false);
    // They send a part of a head, or ask for much and read nothing; fewer than there are places.
    let mut slow = Vec::new();
    for n in 0..40 {
        let mut stream = shown.connect();
        match n % 2 {
            0 => stream.write_all(b"GET /api/store HTTP/1.1\r\nHost: 127").unwrap(),
            _ => {
                let request = format!("GET /vendor/flechette.js HTTP/1.1\r\nHost: {}\r\n\r\n", shown.host());
                (0..20).for_each(|_| stream.write_all(request.as_bytes()).unwrap());
            }
        }
        slow.push(stream);
    }
    let answered = thread::scope(|scope| {
        let asked: Vec<_> = (0..4).map(|_| scope.spawn(|| shown.get("/api/store").status)).collect();
        asked.into_iter().map(|asked| asked.join().unwrap()).collect::<Vec<_>>()
    });
    assert_eq!(answered, [200; 4]);
    // Those that do not finish a head are given up.
    let mut first = slow.swap_remove(0);
    first.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let answer = read(&mut first);
    assert!(answer.status == 408 || answer.status == 0, "{answer:?}");
}

#[test]
fn more_connections_than_there_are_places_wait_and_are_answered() {
    let shown = shown(false);
    let idle: Vec<_> = (0..64).map(|_| shown.connect()).collect();
    // All places are held by those that send nothing; they are given up after the time for a head.
    assert_eq!(shown.get("/api/store").status, 200);
    drop(idle);
}

#[test]
fn waiting_for_commits_takes_no_place_from_others() {
    let shown = shown(false);
    let seq = shown.store.seq().unwrap().0;
    thread::scope(|scope| {
        let waiting: Vec<_> =
            (0..20).map(|_| scope.spawn(|| shown.get(&format!("/api/commits?wait=1&since={seq}")).json())).collect();
        assert_eq!(shown.get("/api/store").status, 200);
        assert_eq!(shown.get("/api/rows?path=prices/us/AAPL").status, 200);
        shown.store.write("new", rows(0, 1), &Default::default()).unwrap();
        for waiting in waiting {
            let commits = waiting.join().unwrap();
            assert_eq!(commits["commits"][0]["events"][0]["path"], "new");
        }
    });
}

#[test]
fn hostile_names_and_values_are_data() {
    let store = Store::memory().unwrap();
    let path = "<script>alert(1)<script>/\u{202e}\"'&";
    store.write(path, rows(0, 3), &Default::default()).unwrap();
    let shown = show(store, false);
    let listed = shown.get("/api/tree");
    assert_eq!(listed.header("content-type"), Some("application/json"));
    assert!(listed.json()["nodes"].as_array().unwrap().iter().any(|node| node["path"] == path));
    let missing = shown.get("/api/table?path=%3Cscript%3Ealert(1)%3Cscript%3E");
    assert_eq!((missing.status, missing.header("content-type")), (404, Some("application/json")));
}

#[test]
fn a_closed_server_answers_nobody_and_its_port_is_free() {
    let shown = shown(false);
    let local = shown.server.local();
    shown.server.close();
    assert!(std::net::TcpListener::bind(local).is_ok());
    shown.server.close();
    assert!(shown.store.seq().is_ok(), "the store stays open");
}
