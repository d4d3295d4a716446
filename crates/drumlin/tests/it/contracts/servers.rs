//! Buckets on real servers, for tests that run on them too.
//!
//! A server is started with what starts it for the Python tests (python/tests/servers), if it has been built there: `make servers`
//! builds them. `DRUMLIN_TEST_BUCKET` names one more bucket, with credentials in the environment as `object_store` reads them.
//! What is missing is said on standard error, past the test's captured output.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use drumlin::storage::BucketStorage;

const SERVERS: [&str; 2] = ["minio", "versitygw"];

/// Serves until its input ends, so it never outlives the test.
const SERVE: &str = "
import json, pathlib, sys, tempfile
from servers import s3
name = sys.argv[1]
if (s3.cache(name) / name).exists():
    with tempfile.TemporaryDirectory() as folder, s3.serve(name, pathlib.Path(folder) / 'data') as port:
        print(json.dumps(s3.options(port)), flush=True)
        sys.stdin.read()
";

/// A bucket that can be used as long as this value lives.
pub struct Bucket {
    pub name: String,
    uri: String,
    options: BTreeMap<String, String>,
    server: Option<Child>,
}

impl Bucket {
    /// A client of a prefix of the bucket.
    pub fn client(&self, prefix: &str) -> BucketStorage {
        BucketStorage::open(&format!("{}/{prefix}", self.uri), &self.options, 2).unwrap()
    }
}

impl Drop for Bucket {
    fn drop(&mut self) {
        if let Some(server) = &mut self.server {
            drop(server.stdin.take());
            let _ = server.wait();
        }
    }
}

fn start(name: &str) -> Option<Bucket> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../python/tests");
    let mut command = Command::new("python3");
    command.args(["-c", SERVE, name]).current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut server = command.spawn().ok()?;
    let mut options = String::new();
    let read = BufReader::new(server.stdout.as_mut()?).read_line(&mut options);
    let Some(options) = read.ok().and_then(|_| serde_json::from_str(&options).ok()) else {
        let _ = server.wait();
        return None;
    };
    Some(Bucket { name: name.into(), uri: "s3://test".into(), options, server: Some(server) })
}

/// All that can be had for `test`.
pub fn buckets(test: &str) -> Vec<Bucket> {
    let mut found = Vec::new();
    // Not captured, as what a test prints is.
    let mut stderr = std::io::stderr();
    for name in SERVERS {
        match start(name) {
            Some(bucket) => found.push(bucket),
            None => writeln!(stderr, "\n*** {name} IS NOT BUILT (make servers): {test} does without ***").unwrap(),
        }
    }
    if let Ok(uri) = std::env::var("DRUMLIN_TEST_BUCKET") {
        let uri = uri.trim_end_matches('/').to_owned();
        found.push(Bucket { name: uri.clone(), uri, options: BTreeMap::new(), server: None });
    }
    found
}
