//! Profiles against files, programs and servers as Amazon's tools have them.

use std::io::{Read, Write};
use std::net::TcpListener;

use tempfile::TempDir;

use super::*;
use crate::base::ErrorKind;

/// A home with these files, and variables beside it.
struct Home {
    folder: TempDir,
    variables: BTreeMap<String, String>,
}

impl Home {
    fn new(credentials: &str, config: &str) -> Self {
        let folder = TempDir::new().unwrap();
        std::fs::create_dir_all(folder.path().join(".aws/sso/cache")).unwrap();
        let home = folder.path().to_str().unwrap().to_owned();
        let home = Self { folder, variables: BTreeMap::from([("HOME".to_owned(), home)]) };
        home.write("credentials", credentials);
        home.write("config", config);
        home
    }

    fn with(mut self, variable: &str, value: &str) -> Self {
        self.variables.insert(variable.into(), value.into());
        self
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(".aws").join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    fn find(&self, named: Option<&str>) -> Result<Option<Profile>> {
        Profile::find(named, &|variable| self.variables.get(variable).cloned())
    }

    fn provider(&self, named: &str) -> Arc<dyn CredentialProvider<Credential = AwsCredential>> {
        self.find(Some(named)).unwrap().unwrap().credentials()
    }
}

/// What a client would sign with now: key, secret and token; or the message of the error.
fn given(provider: &Arc<dyn CredentialProvider<Credential = AwsCredential>>) -> String {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    match runtime.block_on(provider.get_credential()) {
        Ok(keys) => format!("{} {} {}", keys.key_id, keys.secret_key, keys.token.as_deref().unwrap_or("-")),
        Err(e) => e.to_string(),
    }
}

fn seconds_now() -> i64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs() as i64
}

const CREDENTIALS: &str = "# kept by hand
[default]
aws_access_key_id = AKDEFAULT
aws_secret_access_key = canary-default
region = ignored = here

[ work ]
aws_access_key_id=AKWORK
aws_secret_access_key =canary/work=
aws_session_token= canary-token
";
const CONFIG: &str = "[default]
region = eu-west-1
s3 =
  endpoint_url = http://nested
  aws_access_key_id = AKNESTED
[profile work]
region = us-west-2
endpoint_url = http://127.0.0.1:9000
aws_access_key_id = AKOTHER
[profile empty]
region = us-east-1
[profile half]
aws_access_key_id = AKHALF
[profile role]
role_arn = arn:aws:iam::1:role/r
source_profile = work
role_session_name = me
external_id = x+y
region = cn-north-1
[profile mfa]
role_arn = arn:aws:iam::1:role/r
source_profile = work
mfa_serial = arn:aws:iam::1:mfa/me
[profile alone]
role_arn = arn:aws:iam::1:role/r
[profile astray]
role_arn = arn:aws:iam::1:role/r
source_profile = none
[profile round]
role_arn = arn:aws:iam::1:role/r
source_profile = about
[profile about]
role_arn = arn:aws:iam::1:role/s
source_profile = round
[profile self]
role_arn = arn:aws:iam::1:role/r
source_profile = self
[work2]
aws_access_key_id = AKNOPROFILE
";

#[test]
fn a_profile_is_named_by_an_option_or_a_variable_or_is_the_default() {
    let home = || Home::new(CREDENTIALS, CONFIG);
    let found = |home: Home, named: Option<&str>| {
        home.find(named).unwrap().map(|profile| {
            let told = [profile.region(), profile.endpoint()].map(|text| text.unwrap_or("-").to_owned());
            format!("{} {}", given(&profile.credentials()), told.join(" "))
        })
    };
    let default = "AKDEFAULT canary-default - ignored = here -";
    let work = "AKWORK canary/work= canary-token us-west-2 http://127.0.0.1:9000";
    assert_eq!(found(home(), None).as_deref(), Some(default));
    assert_eq!(found(home(), Some("work")).as_deref(), Some(work));
    assert_eq!(found(home().with("AWS_PROFILE", "work"), None).as_deref(), Some(work));
    assert_eq!(found(home().with("AWS_PROFILE", "work"), Some("default")).as_deref(), Some(default));
    assert_eq!(found(home().with("AWS_PROFILE", ""), None).as_deref(), Some(default));
    // Keys in the environment precede all but an option.
    assert_eq!(found(home().with("AWS_ACCESS_KEY_ID", "AKENV").with("AWS_PROFILE", "work"), None), None);
    assert_eq!(found(home().with("AWS_ACCESS_KEY_ID", "AKENV"), Some("work")).as_deref(), Some(work));
    assert_eq!(found(home().with("AWS_WEB_IDENTITY_TOKEN_FILE", "/token"), None), None);
    assert_eq!(found(home().with("AWS_SHARED_CREDENTIALS_FILE", "/nowhere"), None), None);
    assert_eq!(found(Home::new("", ""), None), None);
    let moved = home();
    moved.write("elsewhere", "[default]\naws_access_key_id = AK2\naws_secret_access_key = canary-2\n");
    let path = moved.path("elsewhere").to_str().unwrap().to_owned();
    let moved = moved.with("AWS_SHARED_CREDENTIALS_FILE", &path);
    assert_eq!(found(moved, None).as_deref(), Some("AK2 canary-2 - eu-west-1 -"));
}

#[test]
fn a_profile_that_cannot_be_used_is_refused_without_secrets() {
    let home = Home::new(CREDENTIALS, CONFIG);
    for (name, told) in [
        (
            "nobody",
            "have no profile 'nobody'; profiles there: about, alone, astray, default, empty, half, mfa, role, round, self, work",
        ),
        ("empty", "has no credentials: expected aws_access_key_id"),
        ("half", "has no 'aws_secret_access_key'"),
        ("mfa", "profile 'mfa' assumes a role and has 'mfa_serial'"),
        ("alone", "profile 'alone' assumes a role, and has no 'source_profile'"),
        ("astray", "has the source_profile 'none', which"),
        ("round", "the role of 'round' with 'about' would be assumed with that of 'round'"),
        ("self", "profile 'self' has no credentials"),
    ] {
        let e = home.find(Some(name)).err().unwrap();
        assert_eq!(e.kind(), ErrorKind::InvalidArgument, "{e}");
        assert!(e.message().contains(told) && !e.message().contains("canary"), "{e}");
    }
    let profile = home.find(Some("work")).unwrap().unwrap();
    assert_eq!(profile.secrets(), ["AKWORK", "canary/work=", "canary-token"]);
    assert!(!format!("{:?}", profile.credentials()).contains("canary"));
    let without = Profile::find(Some("work"), &|_| None).err().unwrap();
    assert!(without.message().contains("HOME is not set"), "{without}");
}

#[test]
fn keys_are_read_again_when_the_files_change() {
    let home = Home::new(CREDENTIALS, CONFIG);
    let provider = home.provider("work");
    assert_eq!(given(&provider), "AKWORK canary/work= canary-token");
    home.write("credentials", "[work]\naws_access_key_id = AKNEW\naws_secret_access_key = canary-new\n");
    assert_eq!(given(&provider), "AKNEW canary-new -");
    // Half written: what was known is good still.
    home.write("credentials", "[work]\naws_secret_acc");
    assert_eq!(given(&provider), "AKNEW canary-new -");
}

#[test]
fn a_program_is_asked_again_before_what_it_printed_expires() {
    let home = Home::new("", "");
    let (runs, answer) = (home.path("runs"), home.path("answer"));
    let command = format!("echo run >> {}; cat {}", runs.display(), answer.display());
    home.write("config", &format!("[profile p]\ncredential_process = {command}\n"));
    let print = |key: &str, expires: &str| {
        let text = format!(r#"{{"Version": 1, "AccessKeyId": "{key}", "SecretAccessKey": "canary" {expires}}}"#);
        std::fs::write(&answer, text).unwrap();
    };
    let at = |seconds: i64| {
        let time = chrono::DateTime::from_timestamp(seconds_now() + seconds, 0).unwrap();
        format!(r#", "SessionToken": "t", "Expiration": "{}""#, time.to_rfc3339())
    };
    let runs = || std::fs::read_to_string(&runs).unwrap_or_default().lines().count();
    let provider = home.provider("p");
    assert_eq!(runs(), 0, "to open a store runs no program");
    print("AK1", &at(3600));
    assert_eq!((given(&provider), given(&provider), runs()), ("AK1 canary t".into(), "AK1 canary t".into(), 1));
    // Soon to expire: asked for each time, and good until then if that fails.
    let provider = home.provider("p");
    print("AK2", &at(100));
    assert_eq!((given(&provider), runs()), ("AK2 canary t".into(), 2));
    std::fs::write(&answer, "canary: no JSON").unwrap();
    assert_eq!((given(&provider), runs()), ("AK2 canary t".into(), 3));
    print("AK3", &at(-5));
    assert_eq!(given(&provider), "AK3 canary t");
    std::fs::write(&answer, "canary: no JSON").unwrap();
    let told = given(&provider);
    assert!(told.contains("printed no credentials") && !told.contains("canary"), "{told}");
    home.write("config", "[profile p]\ncredential_process = echo not today >&2; exit 3\n");
    let told = given(&provider);
    assert!(told.contains("credential_process of profile 'p' failed") && told.contains("not today"), "{told}");
}

/// A server that gives these answers, status and body, and the requests that it gets.
fn server(answers: Vec<(&'static str, String)>) -> (String, std::thread::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let mut asked = Vec::new();
        for (status, body) in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let mut head = [0; 4096];
            let n = stream.read(&mut head).unwrap();
            asked.push(String::from_utf8_lossy(&head[..n]).to_ascii_lowercase());
            let length = body.len();
            let head = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
            stream.write_all((head + &body).as_bytes()).unwrap();
        }
        asked
    });
    (address, server)
}

/// What STS answers.
fn assumed(key: &str, seconds: i64) -> String {
    let until = chrono::DateTime::from_timestamp(seconds_now() + seconds, 0).unwrap().to_rfc3339();
    format!(
        "<AssumeRoleResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><AssumeRoleResult><AssumedRoleUser>\
         <Arn>a</Arn></AssumedRoleUser><Credentials><AccessKeyId>{key}</AccessKeyId><SecretAccessKey>canary-{key}\
         </SecretAccessKey><SessionToken>t/+=</SessionToken><Expiration>{until}</Expiration></Credentials>\
         </AssumeRoleResult><ResponseMetadata><RequestId>1</RequestId></ResponseMetadata></AssumeRoleResponse>"
    )
}

#[test]
fn a_role_is_assumed_with_the_credentials_of_another_profile() {
    let refused = "<ErrorResponse><Error><Type>Sender</Type><Code>AccessDenied</Code><Message>not you</Message></Error>\
                   <RequestId>1</RequestId></ErrorResponse>";
    let (address, server) = server(vec![
        ("200 OK", assumed("AKROLE", 3600)),
        ("200 OK", assumed("AKFIRST", 3600)),
        ("200 OK", assumed("AKSECOND", 100)),
        ("403 Forbidden", refused.into()),
        ("403 Forbidden", refused.into()),
        ("200 OK", "canary: no XML".into()),
    ]);
    let chain =
        "[profile chain]\nrole_arn = arn:aws:iam::2:role/second\nsource_profile = role\nduration_seconds = 900\n";
    let home = Home::new(CREDENTIALS, &format!("{CONFIG}{chain}")).with("AWS_ENDPOINT_URL_STS", &address);
    let profile = home.find(Some("role")).unwrap().unwrap();
    assert_eq!(profile.secrets(), ["AKWORK", "canary/work=", "canary-token"]);
    let provider = profile.credentials();
    assert_eq!(
        (given(&provider), given(&provider)),
        ("AKROLE canary-AKROLE t/+=".into(), "AKROLE canary-AKROLE t/+=".into())
    );
    // A role that is assumed with another one; what expires soon is asked for again, and good until then.
    let provider = home.provider("chain");
    assert_eq!(
        (given(&provider), given(&provider)),
        ("AKSECOND canary-AKSECOND t/+=".into(), "AKSECOND canary-AKSECOND t/+=".into())
    );
    let provider = home.provider("role");
    let told = given(&provider);
    assert!(told.contains("for the role of profile 'role': status 403 Forbidden, AccessDenied: not you"), "{told}");
    let told = given(&provider);
    assert!(told.contains("its answer is of another kind") && !told.contains("canary"), "{told}");
    let asked = server.join().unwrap();
    let role = "get /?action=assumerole&version=2011-06-15&rolearn=arn%3aaws%3aiam%3a%3a1%3arole%2fr&rolesessionname=me&externalid=x%2by http";
    assert!(asked[0].starts_with(role) && asked[1].starts_with(role), "{}", asked[0]);
    let signed = |at: usize, key: &str, region: &str| {
        let scope = format!(
            "/{region}/sts/aws4_request, signedheaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token"
        );
        asked[at].contains(&format!("credential={key}/")) && asked[at].contains(&scope)
    };
    assert!(
        signed(0, "akwork", "cn-north-1") && asked[0].contains("x-amz-security-token: canary-token"),
        "{}",
        asked[0]
    );
    assert!(
        signed(2, "akfirst", "us-east-1") && asked[2].contains("rolearn=arn%3aaws%3aiam%3a%3a2%3arole%2fsecond"),
        "{}",
        asked[2]
    );
    assert!(
        asked[2].contains("durationseconds=900") && asked[2].contains("x-amz-security-token: t/+="),
        "{}",
        asked[2]
    );
}

#[test]
fn a_login_is_exchanged_for_credentials() {
    let given_by_sso = format!(
        r#"{{"roleCredentials": {{"accessKeyId": "AKSSO", "secretAccessKey": "canary", "sessionToken": "t",
            "expiration": {}}}}}"#,
        (seconds_now() + 200) * 1000
    );
    let (address, server) = server(vec![("200 OK", given_by_sso), ("401 Unauthorized", String::new())]);
    let config = "[profile p]\nsso_session = s\nsso_account_id = 123\nsso_role_name = Read Only\n\
                  [sso-session s]\nsso_start_url = https://start\nsso_region = eu-north-1\n";
    let home = Home::new("", config).with("AWS_ENDPOINT_URL_SSO", &address);
    let provider = home.provider("p");
    let none = given(&provider);
    assert!(none.contains("run `aws sso login --profile p`"), "{none}");
    let token = |name: &str, start: &str, token: &str, expires: &str| {
        let text = format!(r#"{{"startUrl": "{start}", "accessToken": "{token}", "expiresAt": "{expires}"}}"#);
        home.write(&format!("sso/cache/{name}.json"), &text);
    };
    token("a", "https://start", "canary-old", "2020-01-01T00:00:00Z");
    token("b", "https://other", "canary-other", "2999-01-01T00:00:00Z");
    home.write("sso/cache/c.json", "no JSON");
    assert!(given(&provider).contains("has expired"));
    token("d", "https://start", "canary-new", "2999-01-01T00:00:00UTC");
    assert_eq!(given(&provider), "AKSSO canary t");
    // Within five minutes of the end it is asked for again, and the old one is good until then.
    assert_eq!(given(&provider), "AKSSO canary t");
    let asked = server.join().unwrap();
    assert_eq!(asked.len(), 2);
    let head = &asked[0];
    assert!(head.starts_with("get /federation/credentials?role_name=read+only&account_id=123 http"), "{head}");
    assert!(head.contains("x-amz-sso_bearer_token: canary-new"), "{head}");
}

#[test]
fn a_session_that_is_missing_is_named() {
    let home = Home::new("", "[profile p]\nsso_session = s\nsso_account_id = 1\nsso_role_name = r\n");
    let e = home.find(Some("p")).err().unwrap();
    assert!(e.message().contains("names the sso-session 's'"), "{e}");
}
