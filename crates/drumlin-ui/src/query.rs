//! The query of a target: names and values, decoded.

use drumlin::{Error, Result};

/// Names and values, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Decodes `text`, which follows the question mark.
    pub fn new(text: &str) -> Result<Self> {
        let pair = |pair: &str| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Ok((decoded(name)?, decoded(value)?))
        };
        text.split('&').filter(|pair| !pair.is_empty()).map(pair).collect::<Result<_>>().map(Self)
    }

    /// The first value of `name`.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The values of `name`.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The value of `name`, unless it is empty.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name).filter(|value| !value.is_empty())
    }

    /// The value of `name`, which must be there.
    pub fn need(&self, name: &str) -> Result<&str> {
        self.get(name).ok_or_else(|| Error::invalid(format!("the request has no '{name}', which is required")))
    }

    /// The number `name`, at most `max`; `default` if it is not there.
    pub fn number(&self, name: &str, default: u64, max: u64) -> Result<u64> {
        let Some(text) = self.text(name) else { return Ok(default) };
        let number = text.parse().ok().filter(|number| *number <= max);
        number.ok_or_else(|| Error::invalid(format!("'{name}' is '{text}'; expected a whole number of at most {max}")))
    }
}

/// Replaces `+` and percent signs with two digits by what they stand for.
fn decoded(text: &str) -> Result<String> {
    let bad = || Error::invalid("the query of the request is not valid; expected UTF-8 in percent encoding");
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || rest.next().and_then(|byte| char::from(byte).to_digit(16)).ok_or_else(bad);
                let (high, low) = (digit()?, digit()?);
                (high * 16 + low) as u8
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).map_err(|_| bad())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_decoded() {
        let query = Query::new("path=a%2Fb+c&where=n%20%3E%201&column=x&column=%C3%A9&empty=&flag").unwrap();
        assert_eq!((query.get("path"), query.get("where")), (Some("a/b c"), Some("n > 1")));
        assert_eq!(query.all("column").collect::<Vec<_>>(), ["x", "é"]);
        assert_eq!((query.get("empty"), query.text("empty"), query.get("flag")), (Some(""), None, Some("")));
        assert_eq!(
            (query.number("n", 7, 10).unwrap(), Query::new("n=11").unwrap().number("n", 7, 10).is_err()),
            (7, true)
        );
    }

    #[test]
    fn what_is_no_encoding_is_refused() {
        for text in ["a=%", "a=%2", "a=%zz", "a=%ff", "%C3=1"] {
            assert!(Query::new(text).is_err(), "{text}");
        }
    }
}
