//! Opens an address in the user's browser.
//!
//! Arguments of processes can be seen by all users of a machine, so the browser is given a file that only this user can read, which
//! leads on to the address.

use std::io::Write;
use std::process::{Command, Stdio};

use drumlin::{Error, Result};
use tempfile::NamedTempFile;

/// What opens a file, by system.
const OPENER: &str = if cfg!(target_os = "macos") {
    "open"
} else if cfg!(target_os = "windows") {
    "explorer"
} else {
    "xdg-open"
};

/// Opens `address`; the file must stay until the browser has read it.
pub fn open(address: &str) -> Result<NamedTempFile> {
    let failed = |e: std::io::Error| {
        Error::unavailable(format!("could not open a browser ({OPENER}: {e}); open the address yourself"))
    };
    let mut file = tempfile::Builder::new().prefix("drumlin-ui-").suffix(".html").tempfile().map_err(failed)?;
    file.write_all(page(address).as_bytes()).map_err(failed)?;
    file.flush().map_err(failed)?;
    let mut opener = Command::new(OPENER);
    opener.arg(file.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    opener.spawn().map_err(failed)?;
    Ok(file)
}

/// A page that leads on to `address`, which consists of letters, digits and marks that mean nothing in HTML.
fn page(address: &str) -> String {
    format!(
        "<!doctype html><meta charset=utf-8><title>Drumlin</title><meta http-equiv=refresh content=\"0;url={address}\">\n"
    )
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_page_leads_on() {
        assert!(super::page("http://127.0.0.1:1/#token=0a").contains("content=\"0;url=http://127.0.0.1:1/#token=0a\""));
    }
}
