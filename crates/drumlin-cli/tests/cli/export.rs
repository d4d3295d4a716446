//! What exports write, and what they leave alone.

use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::process::Stdio;

use crate::desk::Desk;

#[test]
fn exports_never_replace_unasked_nor_leave_halves() {
    let desk = Desk::with_tables();
    desk.file("out.csv", "mine");
    desk.fails(1, &["export", "s", "b", "out.csv"], &["out.csv", "--force"]);
    assert_eq!(desk.text("out.csv"), "mine");
    desk.ok(&["export", "s", "b", "out.csv", "--force"]);
    assert_eq!(desk.text("out.csv"), "n,name\n6,six\n");
    desk.ok(&["export", "s", "b", "out.tsv"]);
    assert_eq!(desk.text("out.tsv"), "n\tname\n6\tsix\n");
    desk.fails(1, &["export", "s", "b", "out"], &["--format"]);
    desk.fails(1, &["export", "s", "b", "none/out.csv"], &["none"]);
    desk.fails(1, &["export", "s", "z", "z.csv"], &["no table at 'z'"]);
    desk.fails(1, &["export", "s", "b", "z.csv", "--where", "q = 1"], &["column q"]);
    let left: Vec<_> = std::fs::read_dir(desk.0.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().ends_with(".tmp")), "{left:?}");
    assert!(!desk.path("z.csv").exists());
}

const B: &str = "n,name\n6,six\n";

/// What is in the folder besides the store and what it was made of.
fn left(desk: &Desk) -> Vec<String> {
    let names =
        std::fs::read_dir(desk.0.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> =
        names.filter(|name| !["s", "x.csv", "y.csv", "b.csv"].contains(&name.as_str())).collect();
    names.sort();
    names
}

#[test]
fn standard_output_takes_rows() {
    let desk = Desk::with_tables();
    assert_eq!(desk.ok(&["export", "s", "b", "-", "-f", "csv"]), B);
    assert_eq!(desk.ok(&["export", "s", "b", "/dev/stdout", "-f", "csv", "--force"]), B);
    assert_eq!(desk.ok(&["export", "s", "b", "-", "-f", "json"]), "{\"n\":6,\"name\":\"six\"}\n");
    // What existed before stays, as after any other command.
    assert_eq!(
        desk.shell("echo first > out; $D export s b /dev/stdout -f csv >> out && cat out").ok(),
        format!("first\n{B}")
    );
    for format in ["parquet", "arrow"] {
        let script =
            format!("$D export s a/x - -f {format} | $D import t - -f {format} -t x && $D cat t x -f csv | tail -1");
        assert!(desk.shell(&script).ok().ends_with("3,three\n"), "{format}");
    }
    desk.fails(1, &["export", "s", "b", "-"], &["--format"]);
    desk.fails(1, &["export", "s", "z", "-", "-f", "csv"], &["no table at 'z'"]);
    // A reader of only the beginning gets it, and there is no error.
    let many: String = (0..200_000).map(|n| format!("{n}\n")).collect();
    desk.file("many.csv", &format!("n\n{many}"));
    desk.ok(&["import", "s", "many.csv"]);
    for format in ["csv", "json", "parquet", "arrow"] {
        for file in ["-", "/dev/stdout", "/dev/fd/1"] {
            let mut child = desk.command(&["export", "s", "many", file, "-f", format, "--compression", "none"]);
            let mut child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
            drop(child.stdout.take());
            let ended = child.wait_with_output().unwrap();
            assert_eq!((ended.status.code(), ended.stderr.len()), (Some(0), 0), "{format} to {file}");
        }
    }
    let ran = desk.shell("$D export s many - -f csv > /dev/full");
    assert!(
        ran.code == Some(1) && ran.err.contains("standard output: ") && ran.err.contains("No space"),
        "{}",
        ran.err
    );
}

#[test]
fn only_regular_files_are_replaced() {
    let desk = Desk::with_tables();
    desk.fifo("fifo");
    symlink("/dev/null", desk.path("null")).unwrap();
    for force in ["", "--force"] {
        let script = format!("cat fifo > got & $D export s b fifo -f csv {force} && wait && cat got");
        assert_eq!(desk.shell(&script).ok(), format!("fifo: 1 row, 13 B\n{B}"));
        desk.shell(&format!("$D export s b null -f csv {force}")).ok();
        assert!(desk.path("fifo").symlink_metadata().unwrap().file_type().is_fifo());
        assert_eq!(std::fs::read_link(desk.path("null")).unwrap().to_str(), Some("/dev/null"));
        let nodes = format!("cat fifo > got & $D export-nodes s '**' fifo {force} && wait");
        desk.shell(&nodes).ok();
        assert!(desk.path("fifo").symlink_metadata().unwrap().file_type().is_fifo());
    }
    // A link stays, and what it points to is replaced.
    desk.file("real.csv", "mine");
    std::fs::set_permissions(desk.path("real.csv"), PermissionsExt::from_mode(0o640)).unwrap();
    std::fs::create_dir(desk.path("sub")).unwrap();
    symlink("../real.csv", desk.path("sub/link.csv")).unwrap();
    desk.fails(1, &["export", "s", "b", "sub/link.csv"], &["link.csv", "--force"]);
    assert_eq!(desk.text("real.csv"), "mine");
    desk.ok(&["export", "s", "b", "sub/link.csv", "--force"]);
    assert_eq!(desk.text("real.csv"), B);
    assert!(desk.path("sub/link.csv").is_symlink());
    let mode = desk.path("real.csv").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640, "who may read a file is as before");
    symlink("nowhere", desk.path("dangling.csv")).unwrap();
    for force in [None, Some("--force")] {
        let args: Vec<&str> = ["export", "s", "b", "dangling.csv"].into_iter().chain(force).collect();
        desk.fails(1, &args, &["dangling.csv", "symbolic link"]);
        let args: Vec<&str> = ["export", "s", "b", "sub", "-f", "csv"].into_iter().chain(force).collect();
        desk.fails(1, &args, &["sub is a folder"]);
    }
    desk.fails(2, &["export", "s", "b", "b.csv.gz"], &["b.csv.gz", "gzip"]);
    assert_eq!(left(&desk), ["dangling.csv", "fifo", "got", "null", "real.csv", "sub"]);
}

#[test]
fn an_export_that_fails_leaves_the_old_file() {
    let desk = Desk::new();
    desk.parquet("odd.parquet", &crate::desk::odd_values());
    desk.ok(&["import", "s", "odd.parquet"]);
    desk.file("out.csv", "mine");
    desk.fails(1, &["export", "s", "odd", "out.csv", "--force"], &["out.csv", "CSV cannot hold"]);
    desk.fails(1, &["export", "s", "odd", "out.csv", "--force", "--where", "text > 1"], &["text"]);
    desk.fails(1, &["export", "s", "odd", "out.csv", "--force", "--as-of", "7"], &["no version 7"]);
    assert_eq!(desk.text("out.csv"), "mine");
    let ran = desk.shell("ulimit -f 1; trap '' XFSZ; $D export s odd out.parquet --compression none; ls out.parquet");
    assert!(ran.code != Some(0), "{}", ran.out);
    assert_eq!(left(&desk), ["odd.parquet", "out.csv"]);
}
