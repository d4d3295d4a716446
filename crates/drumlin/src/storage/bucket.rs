//! Buckets: S3 and compatible services, Google Cloud Storage, Azure.
//!
//! What may be done twice is tried again: by the client, and here where the body of an answer breaks off ([`read_again`]). A put
//! on a condition is sent once, since its own success would fail the condition of the second try: the caller has to look
//! whether it was done (answers.rs says what an answer means). A call that is to stop waits for no answer: the request is
//! dropped, whether it was sent or not. No message holds a credential. The client takes what it is given for granted, so addresses
//! and settings are checked before (settings.rs).

use std::collections::BTreeMap;
use std::future::Future;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey, AwsCredential};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::path::Path;
use object_store::{CredentialProvider, ObjectStore, ObjectStoreExt, ObjectStoreScheme, RetryConfig, UpdateVersion};
use url::Url;

use self::profile::Profile;
use super::answers::{asks_again, broke_off, ends_before, error, redact, secrets, shortened};
use super::settings::{check_address, check_settings, settings};
use super::threads::{IoThreads, NoAnswer};
use super::{Tag, owned};
use crate::base::{Error, ErrorKind, Result, check_threads};

/// Requests of one call in flight at a time: more than a round trip has room for at the speed of a network, where each asks for
/// a few hundred KiB.
const AHEAD: usize = 128;
/// What is read with one request, unless it is asked for in one piece: more takes less time in several side by side.
const REQUEST_BYTES_MAX: u64 = 8 << 20;
/// Ranges with no more than this between them are read together, whatever they are.
const NEAR_BYTES: u64 = 16 << 10;
/// A request is retried at most this often, for at most this long.
const TRIES_MAX: usize = 6;
const TRIED_FOR: Duration = Duration::from_secs(60);

/// The pause before a request is repeated whose answer broke off; each pause is twice the previous one.
const PAUSE: Duration = Duration::from_millis(50);

mod ask;
mod objects;
#[allow(
    clippy::disallowed_methods,
    reason = "files that are not the store's, and the time at which what they hold expires"
)]
mod profile;

type Client = Arc<dyn ObjectStore>;

/// A bucket, or a part of it.
pub struct BucketStorage {
    /// Retries what may be done twice.
    client: Client,
    /// Sends each request once.
    once: Client,
    prefix: Path,
    threads: IoThreads,
    secrets: Arc<Vec<String>>,
    is_s3: bool,
}

impl std::fmt::Debug for BucketStorage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BucketStorage").field("prefix", &self.prefix.as_ref()).finish_non_exhaustive()
    }
}

/// Whether `uri` is that of a bucket.
pub fn is_bucket(uri: &str) -> bool {
    uri.split_once("://").is_some_and(|(scheme, _)| {
        ["s3", "s3a", "gs", "az", "adl", "azure", "abfs", "abfss", "https"].contains(&scheme)
    })
}

/// The option that names a profile.
const PROFILE: &str = "aws_profile";

/// The profile from which credentials come, and the options of the client, with what the profile says beside these.
fn with_profile(
    scheme: &ObjectStoreScheme,
    options: &BTreeMap<String, String>,
) -> Result<(Option<Profile>, BTreeMap<String, String>)> {
    let mut options = options.clone();
    if *scheme != ObjectStoreScheme::AmazonS3 {
        return Ok((None, options));
    }
    let named = options.remove(PROFILE);
    let given = settings::<AmazonS3ConfigKey>(&options)?;
    let has = |wanted: AmazonS3ConfigKey| given.iter().any(|(key, _)| *key == wanted);
    let keys = has(AmazonS3ConfigKey::AccessKeyId) || has(AmazonS3ConfigKey::SecretAccessKey);
    if keys || has(AmazonS3ConfigKey::SkipSignature) {
        return match named {
            Some(name) => Err(Error::invalid(format!(
                "options name the profile '{name}' and give keys, too; leave out one of both"
            ))),
            None => Ok((None, options)),
        };
    }
    let environment = |variable: &str| std::env::var(variable).ok();
    let Some(profile) = Profile::find(named.as_deref(), &environment)? else { return Ok((None, options)) };
    let unset = |variables: &[&str]| variables.iter().all(|variable| environment(variable).is_none());
    if let Some(region) = profile.region()
        && !has(AmazonS3ConfigKey::Region)
        && !has(AmazonS3ConfigKey::DefaultRegion)
        && unset(&["AWS_REGION", "AWS_DEFAULT_REGION"])
    {
        options.insert("aws_region".into(), region.to_owned());
    }
    if let Some(endpoint) = profile.endpoint()
        && !has(AmazonS3ConfigKey::Endpoint)
        && !has(AmazonS3ConfigKey::S3Endpoint)
        && unset(&["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"])
    {
        options.insert("aws_endpoint".into(), endpoint.to_owned());
    }
    Ok((Some(profile), options))
}

type SharedCredentials = Arc<dyn CredentialProvider<Credential = AwsCredential>>;

fn client(
    url: &Url,
    options: &BTreeMap<String, String>,
    credentials: Option<SharedCredentials>,
    retry: RetryConfig,
) -> Result<Client> {
    let (scheme, _) = ObjectStoreScheme::parse(url).map_err(|_| {
        Error::invalid(format!("'{}://' is not a known kind of bucket; expected s3://, gs:// or az://", url.scheme()))
    })?;
    let cannot =
        |e: object_store::Error| Error::invalid(redact(&secrets(options), &format!("the bucket cannot be used: {e}")));
    Ok(match scheme {
        ObjectStoreScheme::AmazonS3 => {
            check_settings::<AmazonS3ConfigKey>(options, "AWS_")?;
            let mut builder = AmazonS3Builder::from_env().with_url(url.as_str()).with_retry(retry);
            let given = settings::<AmazonS3ConfigKey>(options)?;
            let names_s3 = given.iter().any(|(key, _)| *key == AmazonS3ConfigKey::S3Endpoint);
            for (key, value) in given {
                // An option takes precedence over the environment's endpoint for S3 alone, which the client would
                // prefer.
                if key == AmazonS3ConfigKey::Endpoint && !names_s3 {
                    builder = builder.with_config(AmazonS3ConfigKey::S3Endpoint, value.clone());
                }
                builder = builder.with_config(key, value);
            }
            let keys = [AmazonS3ConfigKey::S3Endpoint, AmazonS3ConfigKey::Endpoint];
            if is_by_http(keys.iter().find_map(|key| builder.get_config_value(key))) {
                builder = builder.with_allow_http(true);
            }
            if let Some(credentials) = credentials {
                builder = builder.with_credentials(credentials);
            }
            Arc::new(builder.build().map_err(cannot)?)
        }
        ObjectStoreScheme::GoogleCloudStorage => {
            check_settings::<GoogleConfigKey>(options, "GOOGLE_")?;
            let settings = settings::<GoogleConfigKey>(options)?.into_iter();
            let builder = GoogleCloudStorageBuilder::from_env().with_url(url.as_str()).with_retry(retry);
            let builder = settings.fold(builder, |builder, (key, value)| builder.with_config(key, value));
            Arc::new(builder.build().map_err(cannot)?)
        }
        ObjectStoreScheme::MicrosoftAzure => {
            check_settings::<AzureConfigKey>(options, "AZURE_")?;
            let settings = settings::<AzureConfigKey>(options)?.into_iter();
            let builder = MicrosoftAzureBuilder::from_env().with_url(url.as_str()).with_retry(retry);
            let mut builder = settings.fold(builder, |builder, (key, value)| builder.with_config(key, value));
            if is_by_http(builder.get_config_value(&AzureConfigKey::Endpoint)) {
                builder = builder.with_allow_http(true);
            }
            Arc::new(builder.build().map_err(cannot)?)
        }
        _ => {
            return Err(Error::invalid(format!(
                "'{}://' is not a known kind of bucket; expected s3://, gs:// or az://",
                url.scheme()
            )));
        }
    })
}

/// Whether an endpoint is meant to be reached by `http`, whether it comes from an option or the environment.
fn is_by_http(endpoint: Option<String>) -> bool {
    endpoint.is_some_and(|endpoint| endpoint.to_ascii_lowercase().starts_with("http://"))
}

impl BucketStorage {
    /// The bucket and prefix that `uri` names (`s3://bucket/prefix`), with the credentials of the environment, and with
    /// `options` named as in the `object_store` crate (`aws_access_key_id`, `endpoint`, `region`, …); `io_threads` threads
    /// wait for answers.
    pub fn open(uri: &str, options: &BTreeMap<String, String>, io_threads: usize) -> Result<Self> {
        check_threads("io_threads", io_threads)?;
        let url = check_address(uri)?;
        let (scheme, prefix) = ObjectStoreScheme::parse(&url).map_err(|_| {
            Error::invalid(format!(
                "'{}://' is not a known kind of bucket; expected s3://, gs:// or az://",
                url.scheme()
            ))
        })?;
        let (profile, options) = with_profile(&scheme, options)?;
        let options = &options;
        let secrets = secrets(options).into_iter().chain(profile.iter().flat_map(Profile::secrets)).collect();
        let credentials = profile.map(Profile::credentials);
        // One installed earlier is just as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let retry = RetryConfig { max_retries: TRIES_MAX, retry_timeout: TRIED_FOR, ..RetryConfig::default() };
        let threads = IoThreads::start("drumlin-io", io_threads)?;
        let once = RetryConfig { max_retries: 0, ..retry.clone() };
        Ok(Self {
            client: client(&url, options, credentials.clone(), retry)?,
            once: client(&url, options, credentials, once)?,
            prefix,
            threads,
            secrets: Arc::new(secrets),
            is_s3: scheme == ObjectStoreScheme::AmazonS3,
        })
    }

    fn path(&self, name: &str) -> Path {
        below(&self.prefix, name)
    }

    /// Runs `work` on the I/O threads and waits for it: the caller may be a thread of another runtime. `Cancelled` if the call is to
    /// stop: whether `work` was done is not known.
    fn wait<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> Result<T> {
        self.threads.wait(work).map_err(NoAnswer::error)
    }

    /// Checks the requested parts of an object against what was received.
    fn parts(
        &self,
        name: &str,
        ranges: &[Range<u64>],
        read: object_store::Result<Option<Vec<Bytes>>>,
    ) -> Result<Vec<Bytes>> {
        let ends = |why: &str| Error::corrupt(format!("{name}: it is shorter than the bytes requested from it{why}"));
        let mut read = match read {
            Ok(read) => read.ok_or_else(|| ends(""))?.into_iter(),
            Err(e) if ends_before(&e) => return Err(ends(&format!(" ({})", self.error(name, &e).message()))),
            Err(e) => return Err(self.error(name, &e)),
        };
        let part = |range: &Range<u64>| {
            let bytes = if range.start < range.end { read.next().unwrap_or_default() } else { Bytes::new() };
            match range.end.checked_sub(range.start) == Some(bytes.len() as u64) {
                true => Ok(bytes),
                false => {
                    let (start, end, got) = (range.start, range.end, bytes.len());
                    Err(Error::corrupt(format!("{name}: expected bytes {start} to {end}, got {got} bytes")))
                }
            }
        };
        ranges.iter().map(part).collect()
    }

    /// The meaning of an error of the client.
    fn error(&self, name: &str, e: &object_store::Error) -> Error {
        error(&self.secrets, name, e)
    }
}

/// Asks once more, a bounded number of times, where `again` says so of an answer: if its body breaks off, since the client asks
/// again only until an answer has begun, and within the body of an object, or if the service asks for that.
async fn ask_again<T, A: Future<Output = T>>(mut ask: impl FnMut() -> A, again: impl Fn(&T) -> bool) -> T {
    for tried in 0..TRIES_MAX - 1 {
        let answer = ask().await;
        if !again(&answer) {
            return answer;
        }
        tokio::time::sleep(PAUSE * (1 << tried)).await;
    }
    ask().await
}

async fn read_again<T, R>(read: impl FnMut() -> R) -> object_store::Result<T>
where
    R: Future<Output = object_store::Result<T>>,
{
    ask_again(read, |answer| answer.as_ref().is_err_and(|e| broke_off(e) || asks_again(e))).await
}

/// Ranges that follow each other, in requests of at most [`REQUEST_BYTES_MAX`]: together as long as what lies between them is no more
/// than they are, or next to nothing. Requests are made side by side, so that a request less saves little, and bytes cost time and
/// money.
fn runs(ranges: &[Range<u64>]) -> impl Iterator<Item = &[Range<u64>]> {
    let size = |range: &Range<u64>| range.end.saturating_sub(range.start);
    let (mut start, mut wanted) = ranges.first().map_or((0, 0), |first| (first.start, size(first)));
    ranges.chunk_by(move |a, b| {
        let (span, all) = (b.end.saturating_sub(start), u64::saturating_add(wanted, size(b)));
        let close = b.start.saturating_sub(a.end) <= NEAR_BYTES || span.div_ceil(2) <= all;
        let together = b.start >= a.end && close && span <= REQUEST_BYTES_MAX;
        (start, wanted) = if together { (start, all) } else { (b.start, size(b)) };
        together
    })
}

/// Reads ranges that follow each other with one request. `None`: the object ends before one of them does.
async fn read_ranges(client: &Client, path: &Path, ranges: &[Range<u64>]) -> object_store::Result<Option<Vec<Bytes>>> {
    let (Some(first), Some(last)) = (ranges.first(), ranges.last()) else { return Ok(Some(Vec::new())) };
    // No object is that long, and a server that cannot parse the number sends the whole object.
    if i64::try_from(last.end).is_err() {
        return Ok(None);
    }
    let read = client.get_range(path, first.start..last.end).await?;
    if read.len() as u64 != last.end - first.start {
        return Ok(None);
    }
    let part = |range: &Range<u64>| {
        owned(read.slice((range.start - first.start) as usize..(range.end - first.start) as usize), read.len())
    };
    Ok(Some(ranges.iter().map(part).collect()))
}

/// To delete what is gone changes nothing.
async fn delete_again(client: &Client, paths: &[Path]) -> Vec<object_store::Result<Path>> {
    let delete = || {
        // The stream outlives this call.
        let paths: Vec<Path> = paths.to_vec();
        client.delete_stream(stream::iter(paths.into_iter().map(Ok)).boxed()).collect::<Vec<_>>()
    };
    let again = |e: &object_store::Error| broke_off(e) || asks_again(e);
    ask_again(delete, |answers| answers.iter().any(|answer| answer.as_ref().is_err_and(again))).await
}

/// Where the object or the folder `name` is; without a name, the folder of all. A part without characters would become one of the
/// address: servers list nothing below it, or the first page of a list again and again.
fn below(prefix: &Path, name: &str) -> Path {
    name.split('/').filter(|part| !part.is_empty()).fold(prefix.clone(), |path, part| path.join(part))
}

fn tag(e_tag: Option<String>, version: Option<String>) -> Tag {
    Tag(format!("{}\n{}", e_tag.unwrap_or_default(), version.unwrap_or_default()))
}

fn version(tag: &Tag) -> UpdateVersion {
    let (e_tag, version) = tag.0.split_once('\n').unwrap_or((&tag.0, ""));
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    UpdateVersion { e_tag: some(e_tag), version: some(version) }
}

/// The result for each of `names`, from the answers to the request that deleted them. A name that no answer mentions counts
/// as failed.
fn match_answers(
    secrets: &[String],
    prefix: &Path,
    names: &[String],
    answers: Option<&Vec<object_store::Result<Path>>>,
) -> Vec<Result<()>> {
    let unanswered =
        |name: &String| Err(Error::unavailable(format!("{name}: the bucket did not confirm the deletion")));
    let Some(answers) = answers else { return names.iter().map(unanswered).collect() };
    let full = |name: &str| below(prefix, name);
    let gone: std::collections::HashSet<&str> = answers.iter().flatten().map(Path::as_ref).collect();
    let mut failed: BTreeMap<String, Error> = BTreeMap::new();
    let mut at_large = None;
    for e in answers.iter().filter_map(|answer| answer.as_ref().err()) {
        // If some names failed with a server error, the client treats it as a failure of the request.
        let whole = e.to_string();
        if whole.contains("<DeleteResult") {
            let told = |name: &String| match outcome(&whole, full(name).as_ref()) {
                Some(Ok(())) => Ok(()),
                Some(Err(why)) => Err(Error::unavailable(redact(secrets, &format!("{name}: {why}")))),
                None => unanswered(name),
            };
            return names.iter().map(told).collect();
        }
        let told = error(secrets, "", e);
        let text = shortened(told.message());
        match names.iter().find(|name| text.contains(full(name).as_ref())) {
            Some(name) => drop(failed.insert(name.clone(), told)),
            None => at_large = Some(text),
        }
    }
    let answer = |name: &String| match failed.remove(name) {
        // A missing object counts as deleted.
        Some(e) if e.kind() == ErrorKind::NotFound => Ok(()),
        Some(e) => Err(Error::unavailable(format!("{name}{}", e.message()))),
        None if gone.contains(full(name).as_ref()) => Ok(()),
        None => match &at_large {
            Some(text) => Err(Error::unavailable(format!("{name}{text}"))),
            None => unanswered(name),
        },
    };
    names.iter().map(answer).collect()
}

/// What the answer to a bulk deletion says about the object `key`: that it is deleted, or why not.
fn outcome(answer: &str, key: &str) -> Option<std::result::Result<(), String>> {
    let escaped = key.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let at = answer.find(&format!("<Key>{escaped}</Key>"))?;
    let (before, behind) = answer.split_at(at);
    match (before.rfind("<Deleted>"), before.rfind("<Error>")) {
        (deleted, failed) if deleted > failed => Some(Ok(())),
        (_, Some(_)) => {
            let element = behind.split("</Error>").next().unwrap_or_default();
            let part = |name: &str| {
                let text = element.split_once(&format!("<{name}>"))?.1;
                Some(text.split('<').next().unwrap_or_default())
            };
            let told = [part("Code"), part("Message")].into_iter().flatten().collect::<Vec<_>>().join(": ");
            Some(Err(shortened(&told)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_that_failed_among_others_is_reported() {
        let names: Vec<String> = (0..4).map(|n| format!("blocks/1/{n}.blk")).collect();
        let body = "Server returned error response: <?xml version=\"1.0\"?>\n<DeleteResult xmlns=\"x\">\
            <Error><Key>a&amp;b/blocks/1/0.blk</Key><Code>InternalError</Code><Message>not now</Message></Error>\
            <Deleted><Key>a&amp;b/blocks/1/1.blk</Key></Deleted>\
            <Error><Code>SlowDown</Code><Key>a&amp;b/blocks/1/2.blk</Key><Message>canary</Message></Error></DeleteResult>";
        let answers = vec![Err(object_store::Error::Generic { store: "S3", source: body.into() })];
        let prefix = Path::parse("a&b").unwrap();
        let told = match_answers(&["canary".to_owned()], &prefix, &names, Some(&answers));
        let told: Vec<String> =
            told.into_iter().map(|told| told.map_or_else(|e| e.to_string(), |()| "ok".into())).collect();
        assert_eq!(told[..2], ["blocks/1/0.blk: InternalError: not now", "ok"]);
        assert!(told[2].starts_with("blocks/1/2.blk: ") && !told[2].contains("canary"), "{}", told[2]);
        assert_eq!(told[3], "blocks/1/3.blk: the bucket did not confirm the deletion");
        let long = object_store::Error::Generic { store: "S3", source: "x".repeat(100_000).into() };
        let told = match_answers(&[], &prefix, &names, Some(&vec![Err(long)]));
        assert!(told.iter().all(|told| told.as_ref().is_err_and(|e| e.to_string().len() < 1000)));
    }

    #[test]
    fn ranges_are_read_together_where_they_are_close_and_not_too_much() {
        const MB: u64 = 1 << 20;
        let told = |ranges: &[Range<u64>]| runs(ranges).map(<[_]>::len).collect::<Vec<_>>();
        assert!(told(&[]).is_empty());
        // What lies between is no more than they are, or next to nothing.
        assert_eq!(told(&[0..1, 2..3, MB..MB + 1]), [2, 1]);
        assert_eq!(told(&[0..1, NEAR_BYTES + 1..NEAR_BYTES + 2, 2 * NEAR_BYTES + 3..2 * NEAR_BYTES + 4]), [2, 1]);
        assert_eq!(told(&[0..MB, 2 * MB..3 * MB, 5 * MB..6 * MB]), [3]);
        assert_eq!(told(&[0..MB, 4 * MB..5 * MB]), [1, 1]);
        assert_eq!(told(&[0..1, 2..3, 4 * MB..5 * MB, 3..4]), [2, 1, 1]);
        // A long one stays whole.
        assert_eq!(told(&[0..30 * MB, 30 * MB..31 * MB, 31 * MB..38 * MB, 38 * MB..39 * MB]), [1, 2, 1]);
        assert_eq!(told(&[5..u64::MAX, 6..u64::MAX]), [1, 1]);
        let many: Vec<Range<u64>> = (0..100).map(|n| n * MB..(n + 1) * MB).collect();
        assert_eq!(told(&many), [vec![8; 12], vec![4]].concat());
    }

    #[test]
    fn what_is_no_bucket_or_no_option_is_refused() {
        let none = BTreeMap::new();
        for (uri, what) in [
            ("s3://user:canary-pass@bucket/x", "contains credentials"),
            ("s3://", "does not name a bucket"),
            ("s3://bucket/x?sig=canary-signature", "contains '?' or '#'"),
            ("https://example.com/x", "not a known kind of bucket"),
        ] {
            let e = BucketStorage::open(uri, &none, 1).unwrap_err();
            assert!(e.to_string().contains(what) && !e.to_string().contains("canary"), "{e}");
        }
        let odd = BTreeMap::from([("colour".to_owned(), "blue".to_owned())]);
        let e = BucketStorage::open("s3://bucket/x", &odd, 1).unwrap_err();
        assert!(e.to_string().contains("'colour' is not an option"), "{e}");
    }

    // faults: partial deletion x reclaim
    #[test]
    fn every_name_of_a_deletion_is_accounted_for() {
        let names: Vec<String> = (0..4).map(|n| format!("blocks/1/{n}.blk")).collect();
        let prefix = Path::from("p");
        let missing = object_store::Error::NotFound { path: "p/blocks/1/1.blk".into(), source: "gone".into() };
        let failed = object_store::Error::Generic { store: "S3", source: "p/blocks/1/2.blk: slow down".into() };
        let answers = vec![Ok(Path::from("p/blocks/1/0.blk")), Err(missing), Err(failed)];
        let told = match_answers(&[], &prefix, &names, Some(&answers));
        assert_eq!(told.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, true, false, false]);
        assert!(match_answers(&[], &prefix, &names, None).iter().all(Result::is_err));
    }
}
