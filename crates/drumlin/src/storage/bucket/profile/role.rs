//! Roles that are assumed with the credentials of another profile, by Amazon's service STS.

use std::time::SystemTime;

use object_store::aws::{AwsAuthorizer, AwsCredential};
use object_store::client::{HttpRequest, HttpRequestBody};
use serde::Deserialize;
use url::Url;

use super::{Profile, ProfileCredentials, ProfileSource, WAIT, time_of};
use crate::base::{Error, Result};
use crate::storage::answers::shortened;

/// A role.
pub(super) struct Role {
    profile: String,
    arn: String,
    region: Option<String>,
    /// Further parameters of the request.
    parameters: Vec<(&'static str, String)>,
}

impl Profile {
    /// With what the first of the roles is assumed that lead to the one that this profile names; adds them to `roles`, in order. `later`
    /// are the profiles whose roles come after it.
    pub(super) fn first_source(&self, later: &mut Vec<String>, roles: &mut Vec<Role>) -> Result<ProfileSource> {
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
                let source = Self { name: from, files: self.files.clone(), settings };
                match source.setting("role_arn") {
                    Some(_) => source.first_source(later, roles)?,
                    None => source.own_source()?,
                }
            }
        };
        let session = self.setting("role_session_name").unwrap_or("drumlin");
        let optional = [("DurationSeconds", "duration_seconds"), ("ExternalId", "external_id")];
        let optional = optional.into_iter().filter_map(|(key, setting)| Some((key, self.setting(setting)?.to_owned())));
        roles.push(Role {
            profile: name.clone(),
            arn: needed("role_arn")?,
            region: self.region().map(str::to_owned),
            parameters: std::iter::once(("RoleSessionName", session.to_owned())).chain(optional).collect(),
        });
        Ok(first)
    }
}

/// What STS answers.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Answer {
    assume_role_result: Assumed,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Assumed {
    credentials: Given,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Given {
    access_key_id: String,
    secret_access_key: String,
    session_token: String,
    expiration: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Refusal {
    error: Refused,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Refused {
    code: String,
    message: Option<String>,
}

impl ProfileCredentials {
    /// Assumes a role with credentials.
    pub(super) async fn ask_sts(
        &self,
        role: &Role,
        with: &AwsCredential,
    ) -> Result<(AwsCredential, Option<SystemTime>)> {
        let Role { profile, arn, region, parameters } = role;
        let server = match (&self.files.sts, region) {
            (Some(address), _) => address.trim_end_matches('/').to_owned(),
            (None, Some(region)) if region.starts_with("cn-") => format!("https://sts.{region}.amazonaws.com.cn"),
            (None, Some(region)) => format!("https://sts.{region}.amazonaws.com"),
            (None, None) => "https://sts.amazonaws.com".to_owned(),
        };
        let fixed = [("Action", "AssumeRole"), ("Version", "2011-06-15"), ("RoleArn", arn)];
        let all = fixed.into_iter().chain(parameters.iter().map(|(key, value)| (*key, value.as_str())));
        let invalid =
            |e: &dyn std::fmt::Display| Error::invalid(format!("the address of STS, {server}, is not valid: {e}"));
        let address = Url::parse_with_params(&server, all).map_err(|e| invalid(&e))?;
        let mut signed = HttpRequest::new(HttpRequestBody::empty());
        *signed.uri_mut() = address.as_str().parse().map_err(|e| invalid(&e))?;
        let failed = |what: &dyn std::fmt::Display| {
            Error::unavailable(format!("STS gave no credentials for the role of profile '{profile}': {what}"))
        };
        let authorizer = AwsAuthorizer::new(with, "sts", region.as_deref().unwrap_or("us-east-1"));
        authorizer.try_authorize(&mut signed, None).map_err(|e| failed(&e))?;
        let failed_request = |e: reqwest::Error| failed(&e.without_url());
        let client = reqwest::Client::builder().timeout(WAIT).build().map_err(failed_request)?;
        let answer = client.get(address).headers(signed.headers().clone()).send().await.map_err(failed_request)?;
        let status = answer.status();
        let body = answer.bytes().await.map_err(failed_request)?;
        if !status.is_success() {
            let told = quick_xml::de::from_reader(&*body).map(|Refusal { error }: Refusal| {
                let message = error.message.map(|message| format!(": {}", shortened(message.trim())));
                format!(", {}{}", error.code, message.unwrap_or_default())
            });
            return Err(failed(&format!("status {status}{}", told.unwrap_or_default())));
        }
        // It holds secrets, so no message has it.
        let unknown = || failed(&"its answer is of another kind");
        let answer: Answer = quick_xml::de::from_reader(&*body).map_err(|_| unknown())?;
        let given = answer.assume_role_result.credentials;
        let expires = time_of(&given.expiration).ok_or_else(unknown)?;
        let (key_id, secret_key) = (given.access_key_id, given.secret_access_key);
        Ok((AwsCredential { key_id, secret_key, token: Some(given.session_token) }, Some(expires)))
    }
}
