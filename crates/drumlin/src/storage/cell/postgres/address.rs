//! Where a PostgreSQL server is, and who asks it: what an address says, then the environment, as libpq finds it.
#![allow(clippy::disallowed_methods, reason = "the file of passwords is not the store's")]

use std::path::PathBuf;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};
use url::Url;

use super::secure::Secure;
use crate::base::{Error, Result};

/// A parsed address.
pub struct ServerAddress {
    config: Config,
    /// How the connection is made secure, as `sslmode` says, and the file of the certificates that are trusted.
    mode: Option<String>,
    roots: Option<String>,
}

/// A variable of the environment.
type Variables<'a> = &'a dyn Fn(&str) -> Option<String>;

impl ServerAddress {
    /// Parses `postgresql://user@host:5432/database?sslmode=…`.
    pub fn parse(address: &str) -> Result<Self> {
        Self::with(address, &|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
    }

    fn with(address: &str, variables: Variables<'_>) -> Result<Self> {
        // What was given may hold a password: no message repeats it.
        let mut url = Url::parse(address).map_err(|e| {
            Error::invalid(format!("the log's address cannot be parsed: {e}; expected postgresql://host/database"))
        })?;
        let (mut mode, mut roots) = (variables("PGSSLMODE"), variables("PGSSLROOTCERT"));
        let mut kept: Vec<(String, String)> = Vec::new();
        for (name, value) in url.query_pairs() {
            match &*name {
                "sslmode" => mode = Some(value.into_owned()),
                "sslrootcert" => roots = Some(value.into_owned()),
                _ => kept.push((name.into_owned(), value.into_owned())),
            }
        }
        if url.port().is_none()
            && let Some(port) = variables("PGPORT")
        {
            let bad = |_| Error::invalid(format!("PGPORT is {port:?}; expected the number of a port"));
            // An address without a host has no port of its own.
            let _ = url.set_port(Some(port.parse().map_err(bad)?));
        }
        url.set_query(None);
        if !kept.is_empty() {
            url.query_pairs_mut().extend_pairs(kept);
        }
        let mut config: Config = url.as_str().parse().map_err(|e: tokio_postgres::Error| {
            let cause = std::error::Error::source(&e).map(|cause| format!(": {cause}")).unwrap_or_default();
            Error::invalid(format!("the log's address cannot be used: {e}{cause}"))
        })?;
        if config.get_hosts().is_empty() {
            config.host(variables("PGHOST").unwrap_or_else(|| "localhost".into()));
        }
        let user = config.get_user().map(str::to_owned).or_else(|| variables("PGUSER")).or_else(|| variables("USER"));
        let user = user.ok_or_else(|| Error::invalid("the log's address names no user, and PGUSER is not set"))?;
        config.user(&user);
        let database = config.get_dbname().map(str::to_owned).or_else(|| variables("PGDATABASE"));
        let database = database.unwrap_or_else(|| user.clone());
        config.dbname(&database);
        if config.get_password().is_none() {
            let found = variables("PGPASSWORD").or_else(|| password(&config, &user, &database, variables));
            if let Some(password) = found {
                config.password(password);
            }
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(Duration::from_secs(10));
        }
        config.application_name("drumlin").tcp_user_timeout(Duration::from_secs(30));
        // Of several servers, the one that takes writes.
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        Ok(Self { config, mode, roots })
    }

    /// How to connect. Servers of this machine need no TLS; others do, and must show a certificate that is trusted.
    pub fn settings(&self) -> Result<(Config, Option<Secure>)> {
        let mut config = self.config.clone();
        let is_here = |host: &Host| match host {
            Host::Tcp(name) => ["localhost", "127.0.0.1", "::1"].contains(&name.as_str()),
            Host::Unix(_) => true,
        };
        let secure = match self.mode.as_deref() {
            Some("disable") => false,
            Some("require" | "verify-ca" | "verify-full") => true,
            None => !config.get_hosts().iter().all(is_here),
            Some(other) => {
                return Err(Error::invalid(format!(
                    "the log's address has sslmode {other:?}; expected 'disable', or 'verify-full' (also for 'require' and \
                     'verify-ca'; sslrootcert names the certificates that are trusted)"
                )));
            }
        };
        config.ssl_mode(if secure { SslMode::Require } else { SslMode::Disable });
        let secure = secure.then(|| Secure::new(self.roots.as_deref())).transpose()?;
        Ok((config, secure))
    }
}

/// The password of a file of passwords.
fn password(config: &Config, user: &str, database: &str, variables: Variables<'_>) -> Option<String> {
    let of_home = || Some(PathBuf::from(variables("HOME")?).join(".pgpass"));
    let file = variables("PGPASSFILE").map(PathBuf::from).or_else(of_home)?;
    let text = std::fs::read_to_string(file).ok()?;
    let host = config.get_hosts().first().map(|host| match host {
        Host::Tcp(name) => name.clone(),
        Host::Unix(_) => "localhost".to_owned(),
    })?;
    let port = config.get_ports().first().copied().unwrap_or(5432).to_string();
    text.lines().find_map(|line| password_in(line, [&host, &port, database, user]))
}

/// The password of a line `host:port:database:user:password`, if it is about these.
fn password_in(line: &str, wanted: [&str; 4]) -> Option<String> {
    let mut fields = vec![String::new()];
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => fields.last_mut()?.extend(chars.next()),
            ':' if fields.len() < 5 => fields.push(String::new()),
            c => fields.last_mut()?.push(c),
        }
    }
    let fits = |(field, wanted): (&String, &str)| field == "*" || field == wanted;
    let about = fields.len() == 5 && !line.starts_with('#') && fields.iter().zip(wanted).all(fits);
    about.then(|| fields.pop()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(address: &str, variables: &[(&str, &str)]) -> Result<ServerAddress> {
        ServerAddress::with(address, &|name| {
            variables.iter().find(|(there, _)| *there == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn what_an_address_lacks_comes_from_the_environment() {
        let variables = [("PGUSER", "me"), ("PGPASSWORD", "secret"), ("PGPORT", "5433"), ("PGHOST", "other")];
        let there = parsed("postgresql://db/lake", &variables).unwrap().config;
        assert_eq!((there.get_user(), there.get_dbname(), there.get_ports()), (Some("me"), Some("lake"), &[5433][..]));
        assert_eq!(there.get_password(), Some(&b"secret"[..]));
        let there = parsed("postgresql://you:p%40ss@db:1/", &variables).unwrap().config;
        assert_eq!(
            (there.get_user(), there.get_password(), there.get_ports()),
            (Some("you"), Some(&b"p@ss"[..]), &[1][..])
        );
        assert_eq!(there.get_dbname(), Some("you"));
        assert!(parsed("postgresql://db/lake", &[]).is_err());
    }

    #[test]
    fn only_servers_of_this_machine_are_reached_without_tls() {
        let secure = |address: &str| parsed(address, &[("PGUSER", "me")]).unwrap().settings().map(|(_, s)| s.is_some());
        assert!(!secure("postgresql://localhost/x").unwrap() && !secure("postgresql:///x?host=/run").unwrap());
        assert!(secure("postgresql://db/x").unwrap() && !secure("postgresql://db/x?sslmode=disable").unwrap());
        assert!(secure("postgresql://localhost/x?sslmode=verify-full").unwrap());
        assert!(secure("postgresql://db/x?sslmode=prefer").unwrap_err().to_string().contains("'disable'"));
    }

    #[test]
    fn passwords_are_found_as_libpq_finds_them() {
        let wanted = ["db", "5432", "lake", "me"];
        assert_eq!(password_in("*:*:lake:me:a\\:b:c", wanted).as_deref(), Some("a:b:c"));
        assert_eq!(password_in("db:5432:*:*:x", wanted).as_deref(), Some("x"));
        for other in ["db2:*:*:*:x", "# db:5432:*:*:x", "db:5432", ""] {
            assert_eq!(password_in(other, wanted), None, "{other}");
        }
    }

    #[test]
    fn no_message_repeats_a_password() {
        for bad in ["postgresql://me:geheim@db/x?nonsense=1", "postgresql://me:geheim@db:port/x"] {
            let e = parsed(bad, &[]).err().unwrap().to_string();
            assert!(!e.contains("geheim"), "{e}");
        }
    }
}
