//! Credentials of S3 in the files that Amazon's tools share, `~/.aws/credentials` and `~/.aws/config`: keys, those of an SSO login, those
//! that a program prints, and those of a role that is assumed with any of these (*role.rs*).
//!
//! They are looked up when a store is opened, and again when they expire or the files change, so that a process outlives them.

mod role;

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use chrono::DateTime;
use object_store::CredentialProvider;
use object_store::aws::AwsCredential;
use serde::Deserialize;
use tokio::sync::Mutex;
use url::Url;

use self::role::AwsRole;
use crate::base::{Error, Result};

/// Credentials are renewed this long before they expire.
const AHEAD: Duration = Duration::from_secs(300);
/// A server that gives credentials has this long to answer.
const WAIT: Duration = Duration::from_secs(30);

type Settings = BTreeMap<String, String>;

/// What the environment says.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// A profile with credentials.
pub struct Profile {
    name: String,
    files: ProfileFiles,
    settings: Settings,
}

/// Where profiles are.
#[derive(Clone)]
struct ProfileFiles {
    credentials: PathBuf,
    config: PathBuf,
    /// The tokens of SSO logins.
    tokens: PathBuf,
    /// In the place of Amazon's server of SSO.
    sso: Option<String>,
    /// In the place of that of roles, STS.
    sts: Option<String>,
}

/// Where a profile's credentials come from.
enum ProfileSource {
    Keys(AwsCredential),
    Sso(Sso),
    Process(String),
}

struct Sso {
    start: String,
    region: String,
    account: String,
    role: String,
}

/// What was found, and how long it is good for.
struct Found {
    credential: Arc<AwsCredential>,
    expires: Option<SystemTime>,
    /// The files as they were.
    stamps: Stamps,
}

/// When the files were written, and their sizes.
type Stamps = [Option<(SystemTime, u64)>; 2];

impl ProfileFiles {
    fn new(environment: Environment<'_>) -> Option<Self> {
        let home = environment("HOME").filter(|home| !home.is_empty()).map(|home| Path::new(&home).join(".aws"));
        let given = |variable: &str| environment(variable).filter(|value| !value.is_empty());
        let named = |variable: &str| given(variable).map(PathBuf::from);
        let within = |name: &str| home.as_ref().map(|home| home.join(name));
        Some(Self {
            credentials: named("AWS_SHARED_CREDENTIALS_FILE").or_else(|| within("credentials"))?,
            config: named("AWS_CONFIG_FILE").or_else(|| within("config"))?,
            tokens: within("sso/cache").unwrap_or_default(),
            sso: given("AWS_ENDPOINT_URL_SSO"),
            sts: given("AWS_ENDPOINT_URL_STS"),
        })
    }

    fn stamps(&self) -> Stamps {
        [&self.credentials, &self.config].map(|path| {
            let file = std::fs::metadata(path).ok()?;
            Some((file.modified().ok()?, file.len()))
        })
    }

    /// The settings of a profile; `Err` holds the names of those that there are.
    fn settings(&self, name: &str) -> Result<std::result::Result<Settings, Vec<String>>> {
        let [credentials, config] = [sections(&self.credentials)?, sections(&self.config)?];
        let of_config = |section: &str| match section.split_once(char::is_whitespace) {
            Some(("profile", name)) => Some(name.trim().to_owned()),
            None if section == "default" => Some(section.to_owned()),
            _ => None,
        };
        let mut all: BTreeMap<String, Settings> = BTreeMap::new();
        let own = config.iter().filter_map(|(section, settings)| Some((of_config(section)?, settings)));
        for (name, settings) in own.chain(credentials.iter().map(|(name, settings)| (name.clone(), settings))) {
            all.entry(name).or_default().extend(settings.clone());
        }
        let Some(mut settings) = all.remove(name) else { return Ok(Err(all.into_keys().collect())) };
        if let Some(session) = settings.get("sso_session").cloned() {
            let shared = config.get(&format!("sso-session {session}")).ok_or_else(|| {
                Error::invalid(format!("profile '{name}' names the sso-session '{session}', which {self} lack"))
            })?;
            for (key, value) in shared {
                settings.entry(key.clone()).or_insert_with(|| value.clone());
            }
        }
        Ok(Ok(settings))
    }
}

impl fmt::Display for ProfileFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} and {}", self.credentials.display(), self.config.display())
    }
}

/// The sections of a file and their settings; none if there is no such file. Settings of settings, which are indented, are left out.
fn sections(path: &Path) -> Result<BTreeMap<String, Settings>> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(e) => return Err(Error::invalid(format!("{} could not be read: {e}", path.display()))),
    };
    let mut found: BTreeMap<String, Settings> = BTreeMap::new();
    let mut section = None;
    for line in text.lines() {
        let indented = line.starts_with(char::is_whitespace);
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.split_once(']')).filter(|_| !indented) {
            let name = name.0.split_whitespace().collect::<Vec<_>>().join(" ");
            section = Some(found.entry(name).or_default());
        } else if let (Some(section), false, Some((key, value))) = (&mut section, indented, line.split_once('=')) {
            section.insert(key.trim().to_ascii_lowercase(), value.trim().to_owned());
        }
    }
    Ok(found)
}

impl Profile {
    /// The profile `named` by an option, or by `AWS_PROFILE`, or `default` if neither names one and that has credentials. `None` if there is none,
    /// or credentials are in the environment and no option names a profile.
    ///
    /// # Errors
    /// `InvalidArgument` if the profile that is named is not there or has no credentials that can be used, or a file cannot be read.
    pub fn find(named: Option<&str>, environment: Environment<'_>) -> Result<Option<Self>> {
        let there = |variable: &&str| environment(variable).is_some_and(|value| !value.is_empty());
        const OTHERS: [&str; 4] = [
            "AWS_ACCESS_KEY_ID",
            "AWS_WEB_IDENTITY_TOKEN_FILE",
            "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
            "AWS_CONTAINER_CREDENTIALS_FULL_URI",
        ];
        if named.is_none() && OTHERS.iter().any(there) {
            return Ok(None);
        }
        let variable = environment("AWS_PROFILE").filter(|name| !name.is_empty());
        let asked = named.map(str::to_owned).or(variable);
        let Some(files) = ProfileFiles::new(environment) else {
            return match asked {
                Some(name) => Err(Error::invalid(format!(
                    "profile '{name}' cannot be looked up, since HOME is not set; set AWS_SHARED_CREDENTIALS_FILE and \
                     AWS_CONFIG_FILE"
                ))),
                None => Ok(None),
            };
        };
        let name = asked.clone().unwrap_or_else(|| "default".into());
        let settings = match (files.settings(&name)?, &asked) {
            (Ok(settings), _) => settings,
            (Err(_), None) => return Ok(None),
            (Err(others), Some(_)) => {
                let there = if others.is_empty() { "none".into() } else { others.join(", ") };
                return Err(Error::invalid(format!("{files} have no profile '{name}'; profiles there: {there}")));
            }
        };
        let profile = Self { name, files, settings };
        match (profile.source(), asked) {
            (Ok(_), _) => Ok(Some(profile)),
            (Err(_), None) if !profile.settings.contains_key("role_arn") => Ok(None),
            (Err(e), _) => Err(e),
        }
    }

    /// The region that it names.
    pub fn region(&self) -> Option<&str> {
        self.setting("region")
    }

    /// The address of the service that it names.
    pub fn endpoint(&self) -> Option<&str> {
        self.setting("endpoint_url")
    }

    /// Values that must not appear in messages.
    pub fn secrets(&self) -> Vec<String> {
        match self.source() {
            Ok((source, _)) => source.secrets(),
            Err(_) => Vec::new(),
        }
    }

    /// What gives its credentials to a client.
    pub fn credentials(self) -> Arc<dyn CredentialProvider<Credential = AwsCredential>> {
        Arc::new(ProfileCredentials { name: self.name, files: self.files, found: Mutex::new(None) })
    }

    fn setting(&self, name: &str) -> Option<&str> {
        self.settings.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Where its credentials come from, and the roles that are assumed with them, one with the other, in order.
    fn source(&self) -> Result<(ProfileSource, Vec<AwsRole>)> {
        let mut roles = Vec::new();
        let source = self.first_source(&mut Vec::new(), &mut roles)?;
        Ok((source, roles))
    }

    /// The same; adds the roles to `roles`. `later` are the profiles whose roles come after its own.
    fn first_source(&self, later: &mut Vec<String>, roles: &mut Vec<AwsRole>) -> Result<ProfileSource> {
        if self.setting("role_arn").is_none() {
            return self.own_source();
        }
        let name = &self.name;
        later.push(name.clone());
        let advice =
            format!("use a profile with `credential_process = aws configure export-credentials --profile {name}`");
        for (setting, what) in [
            ("mfa_serial", "asks for a code"),
            ("credential_source", "takes its credentials from the machine"),
            (
                "web_identity_token_file",
                "takes its credentials from a token (set AWS_ROLE_ARN and AWS_WEB_IDENTITY_TOKEN_FILE)",
            ),
        ] {
            if self.setting(setting).is_some() {
                return Err(Error::invalid(format!(
                    "profile '{name}' assumes a role and has '{setting}': one that {what} is not assumed here; {advice}"
                )));
            }
        }
        let needed = |what: &str| {
            let lacks = || {
                Error::invalid(format!("profile '{name}' assumes a role, and has no '{what}'; {} need it", self.files))
            };
            self.setting(what).map(str::to_owned).ok_or_else(lacks)
        };
        let from = needed("source_profile")?;
        let first = match later.contains(&from) {
            // One may name itself if it has credentials of its own.
            true if from == *name => self.own_source()?,
            true => {
                let round = later.join("' with '");
                return Err(Error::invalid(format!("the role of '{round}' would be assumed with that of '{from}'")));
            }
            false => {
                let settings = self.files.settings(&from)?.map_err(|others| {
                    let there = others.join(", ");
                    Error::invalid(format!(
                        "profile '{name}' has the source_profile '{from}', which {} lack; profiles there: {there}",
                        self.files
                    ))
                })?;
                Self { name: from, files: self.files.clone(), settings }.first_source(later, roles)?
            }
        };
        let session = self.setting("role_session_name").unwrap_or("drumlin");
        let optional = [("DurationSeconds", "duration_seconds"), ("ExternalId", "external_id")];
        let optional = optional.into_iter().filter_map(|(key, setting)| Some((key, self.setting(setting)?.to_owned())));
        roles.push(AwsRole {
            profile: name.clone(),
            arn: needed("role_arn")?,
            region: self.region().map(str::to_owned),
            parameters: std::iter::once(("RoleSessionName", session.to_owned())).chain(optional).collect(),
        });
        Ok(first)
    }

    /// What it has itself, whichever role it names.
    fn own_source(&self) -> Result<ProfileSource> {
        let name = &self.name;
        let lacks = |what: &str| Error::invalid(format!("profile '{name}' has no '{what}'; {} need it", self.files));
        let needed = |what: &str| self.setting(what).map(str::to_owned).ok_or_else(|| lacks(what));
        let has = |what: &str| self.setting(what).is_some();
        if has("aws_access_key_id") || has("aws_secret_access_key") {
            let token = self.setting("aws_session_token").map(str::to_owned);
            let (key_id, secret_key) = (needed("aws_access_key_id")?, needed("aws_secret_access_key")?);
            return Ok(ProfileSource::Keys(AwsCredential { key_id, secret_key, token }));
        }
        if has("sso_account_id") || has("sso_role_name") {
            let (start, region) = (needed("sso_start_url")?, needed("sso_region")?);
            return Ok(ProfileSource::Sso(Sso {
                start,
                region,
                account: needed("sso_account_id")?,
                role: needed("sso_role_name")?,
            }));
        }
        if let Some(command) = self.setting("credential_process") {
            return Ok(ProfileSource::Process(command.to_owned()));
        }
        Err(Error::invalid(format!(
            "profile '{name}' has no credentials: expected aws_access_key_id and aws_secret_access_key, an SSO account, \
             credential_process, or role_arn with source_profile in {}",
            self.files
        )))
    }
}

impl ProfileSource {
    /// Values of it that must not appear in messages.
    fn secrets(&self) -> Vec<String> {
        match self {
            Self::Keys(keys) => {
                [keys.key_id.clone(), keys.secret_key.clone()].into_iter().chain(keys.token.clone()).collect()
            }
            Self::Sso(_) | Self::Process(_) => Vec::new(),
        }
    }
}

/// Gives a profile's credentials, those that are good now.
struct ProfileCredentials {
    name: String,
    files: ProfileFiles,
    found: Mutex<Option<Found>>,
}

impl fmt::Debug for ProfileCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProfileCredentials").field("name", &self.name).finish_non_exhaustive()
    }
}

impl CredentialProvider for ProfileCredentials {
    type Credential = AwsCredential;

    fn get_credential<'life0, 'async_trait>(
        &'life0 self,
    ) -> Pin<Box<dyn Future<Output = object_store::Result<Arc<AwsCredential>>> + Send + 'async_trait>>
    where
        'life0: 'async_trait,
        Self: 'async_trait,
    {
        Box::pin(async move {
            let failed = |e: Error| object_store::Error::Generic { store: "S3", source: e.into() };
            // One call looks, the others wait for what it finds.
            let mut found = self.found.lock().await;
            let (now, stamps) = (SystemTime::now(), self.files.stamps());
            let expires = found.as_ref().and_then(|found| found.expires);
            let same = found.as_ref().is_some_and(|found| found.stamps == stamps);
            if let Some(found) = found.as_ref().filter(|_| same && expires.is_none_or(|at| now + AHEAD < at)) {
                return Ok(found.credential.clone());
            }
            match self.look(stamps).await {
                Ok(new) => Ok(found.insert(new).credential.clone()),
                // The files may be half written.
                Err(e) => match found.as_ref().filter(|_| expires.is_none_or(|at| now < at)) {
                    Some(old) => Ok(old.credential.clone()),
                    None => Err(failed(e)),
                },
            }
        })
    }
}

impl ProfileCredentials {
    async fn look(&self, stamps: Stamps) -> Result<Found> {
        let name = &self.name;
        let settings = self.files.settings(name)?.map_err(|_| Error::invalid(format!("profile '{name}' is gone")))?;
        let profile = Profile { name: name.clone(), files: self.files.clone(), settings };
        let (source, roles) = profile.source()?;
        let (mut credential, mut expires) = match source {
            ProfileSource::Keys(keys) => (keys, None),
            ProfileSource::Sso(sso) => self.ask_sso(&sso).await?,
            ProfileSource::Process(command) => self.ask_process(command).await?,
        };
        for role in &roles {
            (credential, expires) = self.assume(role, &credential).await?;
        }
        Ok(Found { credential: Arc::new(credential), expires, stamps })
    }

    async fn assume(&self, role: &AwsRole, with: &AwsCredential) -> Result<(AwsCredential, Option<SystemTime>)> {
        let client = reqwest::Client::builder().timeout(WAIT).build().map_err(|e| role.failed(&e))?;
        let (given, until) = role.assume(with, &client, self.files.sts.as_deref()).await?;
        let until = time_of(&until).ok_or_else(|| role.failed(&format!("they expire at '{until}'")))?;
        Ok((given, Some(until)))
    }

    /// Runs a program that prints credentials.
    async fn ask_process(&self, command: String) -> Result<(AwsCredential, Option<SystemTime>)> {
        #[derive(Deserialize)]
        #[serde(rename_all = "PascalCase")]
        struct Printed {
            access_key_id: String,
            secret_access_key: String,
            session_token: Option<String>,
            expiration: Option<String>,
        }
        let name = &self.name;
        let run = move || std::process::Command::new("sh").arg("-c").arg(command).output();
        let output = tokio::task::spawn_blocking(run).await.map_err(|e| Error::unavailable(e.to_string()))?;
        let output = output
            .map_err(|e| Error::unavailable(format!("credential_process of profile '{name}' could not be run: {e}")))?;
        if !output.status.success() {
            let told = String::from_utf8_lossy(&output.stderr);
            let told = super::super::answers::shortened(told.trim());
            return Err(Error::unavailable(format!(
                "credential_process of profile '{name}' failed ({}): {told}",
                output.status
            )));
        }
        // What it printed may hold a secret, so no message has it.
        let printed: Printed = serde_json::from_slice(&output.stdout).map_err(|_| {
            Error::unavailable(format!(
                "credential_process of profile '{name}' printed no credentials; expected JSON with AccessKeyId and \
                 SecretAccessKey"
            ))
        })?;
        let expires = printed.expiration.map(|text| time_of(&text).ok_or(text)).transpose().map_err(|text| {
            Error::unavailable(format!("credential_process of profile '{name}' printed the expiration '{text}'"))
        })?;
        let (key_id, secret_key) = (printed.access_key_id, printed.secret_access_key);
        Ok((AwsCredential { key_id, secret_key, token: printed.session_token }, expires))
    }

    /// Exchanges the token of a login for credentials.
    async fn ask_sso(&self, sso: &Sso) -> Result<(AwsCredential, Option<SystemTime>)> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Answer {
            role_credentials: Given,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Given {
            access_key_id: String,
            secret_access_key: String,
            session_token: String,
            expiration: u64,
        }
        let token = self.token(sso)?;
        let server = match &self.files.sso {
            Some(address) => address.trim_end_matches('/').to_owned(),
            None => format!("https://portal.sso.{}.amazonaws.com", sso.region),
        };
        let address = format!("{server}/federation/credentials");
        let parameters = [("role_name", &sso.role), ("account_id", &sso.account)];
        let address = Url::parse_with_params(&address, parameters)
            .map_err(|e| Error::invalid(format!("the address of SSO, {server}, is not valid: {e}")))?;
        let name = &self.name;
        let failed = |e: reqwest::Error| {
            Error::unavailable(format!("SSO gave no credentials for profile '{name}': {}", e.without_url()))
        };
        let client = reqwest::Client::builder().timeout(WAIT).build().map_err(failed)?;
        let answer = client.get(address).header("x-amz-sso_bearer_token", token).send().await.map_err(failed)?;
        if !answer.status().is_success() {
            let status = answer.status();
            return Err(Error::unavailable(format!(
                "SSO gave no credentials for profile '{name}' (status {status}); run `aws sso login --profile {name}`"
            )));
        }
        let bytes = answer.bytes().await.map_err(failed)?;
        let Answer { role_credentials: given } = serde_json::from_slice(&bytes)
            .map_err(|_| Error::unavailable(format!("SSO gave no credentials for profile '{name}'")))?;
        let expires = SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(given.expiration));
        let (key_id, secret_key) = (given.access_key_id, given.secret_access_key);
        Ok((AwsCredential { key_id, secret_key, token: Some(given.session_token) }, expires))
    }

    /// The token of a login that has not expired.
    fn token(&self, sso: &Sso) -> Result<String> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Kept {
            start_url: Option<String>,
            access_token: Option<String>,
            expires_at: Option<String>,
        }
        let files = std::fs::read_dir(&self.files.tokens).into_iter().flatten().flatten();
        let kept = files.filter_map(|file| serde_json::from_slice::<Kept>(&std::fs::read(file.path()).ok()?).ok());
        let good = |kept: Kept| {
            let until = time_of(&kept.expires_at?)?;
            (kept.start_url? == sso.start && until > SystemTime::now()).then_some((until, kept.access_token?))
        };
        let name = &self.name;
        kept.filter_map(good).max().map(|(_, token)| token).ok_or_else(|| {
            Error::unavailable(format!(
                "there is no SSO login for profile '{name}', or it has expired; run `aws sso login --profile {name}`"
            ))
        })
    }
}

/// A time as these files have it: `2026-01-02T03:04:05Z`, or, in old ones, with `UTC`.
fn time_of(text: &str) -> Option<SystemTime> {
    let text = text.strip_suffix("UTC").map_or_else(|| text.to_owned(), |text| format!("{text}Z"));
    DateTime::parse_from_rfc3339(&text).ok().map(SystemTime::from)
}

#[cfg(test)]
mod tests;
