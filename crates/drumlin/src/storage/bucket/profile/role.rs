//! Roles that are assumed with the credentials of another profile, by Amazon's service STS.

use object_store::aws::{AwsAuthorizer, AwsCredential};
use object_store::client::{HttpRequest, HttpRequestBody};
use serde::Deserialize;
use url::Url;

use crate::base::{Error, Result};
use crate::storage::answers::shortened;

/// A role.
pub struct AwsRole {
    /// The profile that names it.
    pub profile: String,
    /// Its name.
    pub arn: String,
    /// The region of the server that is asked.
    pub region: Option<String>,
    /// Further parameters of the request.
    pub parameters: Vec<(&'static str, String)>,
}

/// What STS answers.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct StsAnswer {
    assume_role_result: StsResult,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct StsResult {
    credentials: StsCredentials,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct StsCredentials {
    access_key_id: String,
    secret_access_key: String,
    session_token: String,
    expiration: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct StsRefusal {
    error: StsError,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct StsError {
    code: String,
    message: Option<String>,
}

impl AwsRole {
    /// The error of a role that was not assumed.
    pub fn failed(&self, what: &dyn std::fmt::Display) -> Error {
        let profile = &self.profile;
        Error::unavailable(format!("STS gave no credentials for the role of profile '{profile}': {what}"))
    }

    /// Assumes it with the credentials `with`, by Amazon's server or the one at `server`. Returns its credentials, and until when they are
    /// good.
    pub async fn assume(
        &self,
        with: &AwsCredential,
        client: &reqwest::Client,
        server: Option<&str>,
    ) -> Result<(AwsCredential, String)> {
        let Self { arn, region, parameters, .. } = self;
        let server = match (server, region) {
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
        let authorizer = AwsAuthorizer::new(with, "sts", region.as_deref().unwrap_or("us-east-1"));
        authorizer.try_authorize(&mut signed, None).map_err(|e| self.failed(&e))?;
        let failed_request = |e: reqwest::Error| self.failed(&e.without_url());
        let answer = client.get(address).headers(signed.headers().clone()).send().await.map_err(failed_request)?;
        let status = answer.status();
        let body = answer.bytes().await.map_err(failed_request)?;
        if !status.is_success() {
            let told = quick_xml::de::from_reader(&*body).map(|StsRefusal { error }: StsRefusal| {
                let message = error.message.map(|message| format!(": {}", shortened(message.trim())));
                format!(", {}{}", error.code, message.unwrap_or_default())
            });
            return Err(self.failed(&format!("status {status}{}", told.unwrap_or_default())));
        }
        // It holds secrets, so no message has it.
        let unknown = || self.failed(&"its answer is of another kind");
        let answer: StsAnswer = quick_xml::de::from_reader(&*body).map_err(|_| unknown())?;
        let given = answer.assume_role_result.credentials;
        let (key_id, secret_key) = (given.access_key_id, given.secret_access_key);
        Ok((AwsCredential { key_id, secret_key, token: Some(given.session_token) }, given.expiration))
    }
}
