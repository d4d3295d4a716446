//! The address and the settings of a bucket, checked before the client gets them: it takes what it is given for granted, and a
//! header or address that cannot be made ends one of its threads.
//!
//! What comes from the environment is checked as options are. No message shows a value that may be a secret.

use std::collections::BTreeMap;
use std::str::FromStr;

use url::Url;

use crate::base::{Error, Result};

/// Settings whose values are whole documents, which may have several lines.
const DOCUMENTS: [&str; 3] = ["service_account", "certificate", "credentials"];

/// The address of a bucket, `s3://bucket/prefix`.
pub fn check_address(uri: &str) -> Result<Url> {
    let scheme = uri.split_once("://").map_or("s3", |(scheme, _)| scheme);
    if uri.chars().any(char::is_control) {
        return Err(Error::invalid(
            "the address of the bucket contains a control character, such as a line break; remove it",
        ));
    }
    let url = Url::parse(uri).map_err(|e| {
        Error::invalid(format!("the address of the bucket is not valid: {e}; expected one such as s3://bucket/prefix"))
    })?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Error::invalid("the address of the bucket contains credentials; give them as options instead"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(Error::invalid("the address of the bucket contains '?' or '#'; give settings as options instead"));
    }
    let host = url.host_str().unwrap_or_default();
    if host.is_empty() {
        return Err(Error::invalid(format!("'{uri}' does not name a bucket; expected {scheme}://bucket/prefix")));
    }
    if !host.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b)) {
        return Err(Error::invalid(format!(
            "'{uri}' does not name a bucket: the name may contain ASCII letters, digits, '-', '.' and '_'; expected \
             {scheme}://bucket/prefix"
        )));
    }
    Ok(url)
}

/// The options as the client's settings.
pub fn settings<K: FromStr>(options: &BTreeMap<String, String>) -> Result<Vec<(K, String)>> {
    let setting = |(name, value): (&String, &String)| match name.to_ascii_lowercase().parse() {
        Ok(key) => Ok((key, value.clone())),
        Err(_) => Err(Error::invalid(format!(
            "'{name}' is not an option of this kind of bucket; S3 has aws_access_key_id, aws_secret_access_key, \
             aws_session_token, aws_region, endpoint, allow_http ..."
        ))),
    };
    options.iter().map(setting).collect()
}

/// Checks the values of options, and those of the environment's variables with `prefix` that are settings too and that no
/// option takes the place of.
pub fn check_settings<K: FromStr + AsRef<str>>(options: &BTreeMap<String, String>, prefix: &str) -> Result<()> {
    let key = |name: &str| name.to_ascii_lowercase().parse::<K>().ok().map(|key| key.as_ref().to_owned());
    let given: Vec<String> = options.keys().filter_map(|name| key(name)).collect();
    let has_endpoint = given.iter().any(|name| is_address(name));
    for (name, value) in options {
        check(&format!("the option '{name}'"), key(name).as_deref().unwrap_or(name), value)?;
    }
    for (name, value) in std::env::vars_os() {
        let Some(name) = name.to_str().filter(|name| name.starts_with(prefix)) else { continue };
        let Some(key) = key(name).filter(|key| !given.contains(key)) else { continue };
        // An endpoint that is given takes the place of the environment's, by whatever name.
        if has_endpoint && is_address(&key) {
            continue;
        }
        let what = format!("the environment variable {name}");
        let value = value.to_str().ok_or_else(|| Error::invalid(format!("{what} is not UTF-8")))?;
        check(&what, &key, value)?;
    }
    Ok(())
}

/// Whether the setting `key` is a whole address.
fn is_address(key: &str) -> bool {
    let named = ["endpoint", "url", "full_uri", "authority_host", "proxy"].iter().any(|part| key.contains(part));
    // Switches, certificates and lists of hosts.
    let other = ["use_", "relative", "certificate", "excludes"].iter().any(|part| key.contains(part));
    named && !other
}

fn check(what: &str, key: &str, value: &str) -> Result<()> {
    if is_address(key) {
        return check_endpoint(what, value);
    }
    if DOCUMENTS.iter().any(|part| key.contains(part)) {
        return Ok(());
    }
    if value.chars().any(char::is_control) {
        return Err(Error::invalid(format!("{what} contains a control character, such as a line break; remove it")));
    }
    let plain = ["key", "token", "secret", "region", "bucket", "account", "client_id", "tenant"];
    let file = key.ends_with("_file");
    if !file && plain.iter().any(|part| key.contains(part)) && !value.bytes().all(|b| b.is_ascii_graphic()) {
        return Err(Error::invalid(format!("{what} contains a space or a character that is not ASCII; remove it")));
    }
    Ok(())
}

fn check_endpoint(what: &str, value: &str) -> Result<()> {
    let expected = "expected http:// or https:// and a host, with a port if it is not the default one, such as \
                    http://127.0.0.1:9000";
    let wrong = |why: &str| Err(Error::invalid(format!("{what} {why}; {expected}")));
    if value.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return wrong("contains a space or a control character");
    }
    let lower = value.to_ascii_lowercase();
    if !["http://", "https://"].iter().any(|scheme| lower.starts_with(scheme)) {
        return wrong("does not begin with http:// or https://");
    }
    let Ok(url) = Url::parse(value) else { return wrong("is not a valid address") };
    if !url.username().is_empty() || url.password().is_some() {
        return wrong("contains a user name or password; give these as options instead");
    }
    if url.host_str().is_none_or(str::is_empty) {
        return wrong("has no host");
    }
    if url.query().is_some() || url.fragment().is_some() {
        return wrong("contains '?' or '#'");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use object_store::aws::AmazonS3ConfigKey;
    use object_store::azure::AzureConfigKey;
    use object_store::gcp::GoogleConfigKey;

    use super::*;

    const ADDRESSES: [&str; 15] = [
        "127.0.0.1:9000",
        "localhost:9000",
        "minio.local",
        "ftp://x",
        "http:/127.0.0.1:9000",
        "//127.0.0.1:9000",
        " http://127.0.0.1:9000",
        "http://127.0.0.1:9000 ",
        "http://127.0.0.1:9000\n",
        "http://canary:canary@127.0.0.1:1",
        "http://canary@127.0.0.1:1",
        "http://",
        "http://[::1",
        "http://host?sig=canary",
        "",
    ];

    #[test]
    fn addresses_that_are_none_are_refused_under_each_name() {
        fn refused<K: FromStr + AsRef<str>>(names: &[&str]) {
            for name in names {
                for value in ADDRESSES {
                    let options = BTreeMap::from([((*name).to_owned(), value.to_owned())]);
                    let error = check_settings::<K>(&options, "NONE_").expect_err(&format!("{name} {value}"));
                    let told = error.to_string();
                    assert!(told.contains(&format!("the option '{name}'")) && !told.contains("canary"), "{told}");
                }
                for value in ["http://127.0.0.1:9000", "https://[::1]:1", "HTTP://host", "https://host/path/"] {
                    let options = BTreeMap::from([((*name).to_owned(), value.to_owned())]);
                    check_settings::<K>(&options, "NONE_").unwrap();
                }
            }
        }
        refused::<AmazonS3ConfigKey>(&[
            "endpoint",
            "aws_endpoint_url",
            "AWS_ENDPOINT_URL_S3",
            "aws_metadata_endpoint",
            "proxy_url",
        ]);
        refused::<GoogleConfigKey>(&["google_base_url", "base_url", "proxy_url"]);
        refused::<AzureConfigKey>(&["azure_endpoint", "azure_msi_endpoint", "azure_authority_host"]);
    }

    #[test]
    fn values_that_cannot_be_sent_are_refused_and_not_told() {
        for (name, value) in [
            ("aws_access_key_id", "canary\nb"),
            ("aws_access_key_id", "canary ключ"),
            ("aws_secret_access_key", "canary\r"),
            ("token", "canary\ny"),
            ("region", "canary east"),
            ("user_agent", "canary\n"),
        ] {
            let options = BTreeMap::from([(name.to_owned(), value.to_owned())]);
            let told = check_settings::<AmazonS3ConfigKey>(&options, "NONE_").unwrap_err().to_string();
            assert!(told.contains(name) && !told.contains("canary"), "{told}");
        }
        let options = BTreeMap::from([("service_account_key".to_owned(), "{\n}".to_owned())]);
        check_settings::<GoogleConfigKey>(&options, "NONE_").unwrap();
    }

    #[test]
    fn addresses_of_buckets_are_checked() {
        for uri in
            ["s3://te st/a", "s3://тест/a", "s3://test/a\0b", "s3://te\nst/a", "s3://", "s3://a%20b/c", "gs://x@y/z"]
        {
            assert!(check_address(uri).is_err(), "{uri}");
        }
        for uri in ["s3://test.with.dots/a", "s3://ab/a", "gs://b_1/prefix/x y", "s3://test/ключ"] {
            check_address(uri).unwrap();
        }
    }
}
