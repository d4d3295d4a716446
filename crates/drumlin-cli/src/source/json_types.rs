//! The types of JSON members, inferred from their values: one that holds each of them; else text, in which numbers and booleans keep
//! their literal text.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Fields};

use super::json_columns::{Members, elements};
use super::number::{float64, integer};

/// Values nested more deeply than this are refused, as types are.
const DEPTH_MAX: usize = 32;

/// What the values of a member have been so far.
#[derive(Default)]
pub struct Seen {
    texts: bool,
    flags: bool,
    integers: bool,
    /// An integer that does not fit Int64.
    large: bool,
    floats: bool,
    /// An integer that a float would round.
    long: bool,
    list: Option<Box<Seen>>,
    object: Option<SeenMembers>,
}

/// What the members of objects have been, in the order of their first appearance.
#[derive(Default)]
pub struct SeenMembers(Vec<(String, Seen)>);

impl SeenMembers {
    /// Notes the members of an object; the error says what is wrong, and of which.
    pub fn note(&mut self, Members(members): &Members<'_>, depth: usize) -> Result<(), String> {
        for (at, (name, value)) in members.iter().enumerate() {
            if members[..at].iter().any(|(other, _)| other == name) {
                return Err(format!("an object has the member '{name}' twice; remove or rename one"));
            }
            let place = match self.0.get(at).is_some_and(|(known, _)| known == name) {
                true => at,
                false => self.0.iter().position(|(known, _)| known == name).unwrap_or(self.0.len()),
            };
            if place == self.0.len() {
                self.0.push((name.clone(), Seen::default()));
            }
            self.0[place].1.note(value.get(), depth + 1).map_err(|why| match depth {
                0 => format!("column '{name}': {why}"),
                _ => why,
            })?;
        }
        Ok(())
    }

    /// The columns.
    pub fn fields(&self) -> Fields {
        self.0.iter().map(|(name, seen)| Field::new(name, seen.data_type(), true)).collect()
    }
}

impl Seen {
    fn note(&mut self, value: &str, depth: usize) -> Result<(), String> {
        if depth > DEPTH_MAX {
            return Err(format!("the value is nested more than {DEPTH_MAX} levels deep"));
        }
        match value.as_bytes().first() {
            Some(b'"') => self.texts = true,
            Some(b't' | b'f') => self.flags = true,
            Some(b'[') => {
                let inner = self.list.get_or_insert_default();
                for element in elements(value).unwrap_or_default() {
                    inner.note(element.get(), depth + 1)?;
                }
            }
            Some(b'{') => {
                let members = serde_json::from_str(value).map_err(|e| e.to_string())?;
                self.object.get_or_insert_default().note(&members, depth)?;
            }
            Some(b'n') | None => {}
            Some(_) => self.note_number(value),
        }
        let plain = self.texts || self.flags || self.integers || self.large || self.floats;
        if usize::from(plain) + usize::from(self.list.is_some()) + usize::from(self.object.is_some()) > 1 {
            return Err("the values are of different kinds (objects, arrays, plain values); make them agree".to_owned());
        }
        Ok(())
    }

    fn note_number(&mut self, value: &str) {
        let whole = !value.contains(['.', 'e', 'E']);
        if whole && integer::<i64>(value).is_ok() {
            self.integers = true;
            self.long |= float64(value).is_err();
        } else if whole && integer::<u64>(value).is_ok() {
            self.large = true;
            self.long |= float64(value).is_err();
        } else if float64(value).is_ok() {
            self.floats = true;
        } else {
            self.texts = true;
        }
    }

    fn data_type(&self) -> DataType {
        if let Some(inner) = &self.list {
            return DataType::List(Arc::new(Field::new("item", inner.data_type(), true)));
        }
        if let Some(members) = &self.object {
            return DataType::Struct(members.fields());
        }
        let numbers = self.integers || self.large || self.floats;
        match (self.texts, self.flags, numbers) {
            (false, false, false) => DataType::Null,
            (false, true, false) => DataType::Boolean,
            (false, false, true) if self.floats && self.long => DataType::Utf8,
            (false, false, true) if self.floats => DataType::Float64,
            (false, false, true) if !self.large => DataType::Int64,
            // If there are negative ones, too, reading stops at the first.
            (false, false, true) => DataType::UInt64,
            _ => DataType::Utf8,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inferred(lines: &[&str]) -> Result<Fields, String> {
        let mut seen = SeenMembers::default();
        lines.iter().try_for_each(|line| seen.note(&serde_json::from_str(line).unwrap(), 0))?;
        Ok(seen.fields())
    }

    #[test]
    fn a_type_holds_every_value() {
        let list = |inner: DataType| DataType::List(Arc::new(Field::new("item", inner, true)));
        for (values, data_type) in [
            (&["1", "-2", "null"][..], DataType::Int64),
            (&["1", "2.0"], DataType::Float64),
            (&["1", "\"007\""], DataType::Utf8),
            (&["1", "true"], DataType::Utf8),
            (&["1.5", "9007199254740993"], DataType::Utf8),
            (&["18446744073709551615", "1"], DataType::UInt64),
            (&["18446744073709551615", "-1"], DataType::UInt64),
            (&["12345678901234567890123"], DataType::Utf8),
            (&["1e400"], DataType::Utf8),
            (&["-0"], DataType::Float64),
            (&["true", "null"], DataType::Boolean),
            (&["null"], DataType::Null),
            (&["[[1], null]", "[]", "null"], list(list(DataType::Int64))),
            (&["[null, [1]]"], list(list(DataType::Int64))),
            (&["[18446744073709551615]"], list(DataType::UInt64)),
            (&["[null]"], list(DataType::Null)),
            (&["[1, \"x\"]"], list(DataType::Utf8)),
        ] {
            let lines: Vec<String> = values.iter().map(|value| format!("{{\"a\": {value}}}")).collect();
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            assert_eq!(inferred(&lines).unwrap()[0].data_type(), &data_type, "{values:?}");
        }
    }

    #[test]
    fn members_are_in_order_and_there_once() {
        let fields =
            inferred(&["{\"z\": 1}", "{\"a\": {\"y\": 1}}", "{\"a\": {\"b\": 1, \"y\": null}, \"z\": 2}"]).unwrap();
        assert_eq!(fields.iter().map(|field| field.name().as_str()).collect::<Vec<_>>(), ["z", "a"]);
        assert_eq!(fields[1].data_type().to_string(), "Struct(\"y\": Int64, \"b\": Int64)");
        for bad in ["{\"a\": 1, \"a\": 2}", "{\"a\": {\"b\": 1, \"b\": 2}}"] {
            assert!(inferred(&[bad]).unwrap_err().contains("twice"), "{bad}");
        }
        assert!(inferred(&["{\"a\": 1}", "{\"a\": [1]}"]).unwrap_err().contains("make them agree"));
        let deep = format!("{{\"a\": {}{}}}", "[".repeat(40), "]".repeat(40));
        assert!(inferred(&[&deep]).unwrap_err().contains("nested"));
    }
}
