//! The page's files, which are part of the binary. A name that is not in this list is not found: no file of the disk is ever looked
//! for.

use crate::reply::Reply;

macro_rules! files {
    ($($name:literal $kind:literal),* $(,)?) => {
        /// Target, type and content.
        pub const FILES: &[(&str, &str, &[u8])] =
            &[$((concat!("/", $name), $kind, include_bytes!(concat!("../page/", $name)))),*];
    };
}

files! {
    "index.html" "text/html; charset=utf-8",
    "style.css" "text/css; charset=utf-8",
    "icon.svg" "image/svg+xml",
    "main.js" "text/javascript; charset=utf-8",
    "server.js" "text/javascript; charset=utf-8",
    "element.js" "text/javascript; charset=utf-8",
    "figures.js" "text/javascript; charset=utf-8",
    "scroller.js" "text/javascript; charset=utf-8",
    "tree.js" "text/javascript; charset=utf-8",
    "table.js" "text/javascript; charset=utf-8",
    "grid.js" "text/javascript; charset=utf-8",
    "rows.js" "text/javascript; charset=utf-8",
    "versions.js" "text/javascript; charset=utf-8",
    "axis.js" "text/javascript; charset=utf-8",
    "chart.js" "text/javascript; charset=utf-8",
    "difference.js" "text/javascript; charset=utf-8",
    "layout.js" "text/javascript; charset=utf-8",
    "cells.js" "text/javascript; charset=utf-8",
    "log.js" "text/javascript; charset=utf-8",
    "activity.js" "text/javascript; charset=utf-8",
    "metrics.js" "text/javascript; charset=utf-8",
    "vendor/flechette.js" "text/javascript; charset=utf-8",
}

/// The file of a target.
pub fn find(target: &str) -> Option<Reply> {
    let target = if target == "/" { "/index.html" } else { target };
    FILES.iter().find(|(name, ..)| *name == target).map(|(_, kind, body)| Reply::file(kind, body))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::ZlibEncoder;

    use super::*;

    /// The maximum size of the scripts, compressed.
    const SCRIPTS_BYTES_MAX: usize = 300_000;

    #[test]
    fn the_scripts_are_small() {
        let mut packed = ZlibEncoder::new(Vec::new(), Compression::best());
        let scripts = FILES.iter().filter(|(_, kind, _)| kind.starts_with("text/javascript"));
        scripts.for_each(|(_, _, body)| packed.write_all(body).unwrap());
        let bytes = packed.finish().unwrap().len();
        assert!(bytes > 10_000 && bytes <= SCRIPTS_BYTES_MAX, "{bytes} bytes");
    }

    #[test]
    fn every_file_that_a_file_names_is_there() {
        for (name, _, body) in FILES.iter().filter(|(name, ..)| !name.contains("vendor")) {
            let text = std::str::from_utf8(body).unwrap();
            for part in text.split('"').filter(|part| part.starts_with("./")) {
                assert!(find(&part[1..]).is_some(), "{name} names {part}");
            }
            assert!(!text.contains("innerHTML") && !text.contains("http://") || *name == "/icon.svg", "{name}");
        }
    }
}
