//! What the metadata of a schema say of its columns by name, when columns get other names or go: pandas' own, which pyarrow and
//! others make frames by, and what the Python package adds to it (see its `_pandas/description.py`).
//!
//! Both came with a frame, so nothing is expected of them: what is not as they are is left as it is.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

const PANDAS: &str = "pandas";
const DESCRIPTION: &str = "drumlin.pandas";
const CATEGORIES: &str = "drumlin.pandas.categories";

/// What became of columns by their names: another name, or `None` for those that are gone. All others are as they were.
pub type Changed = BTreeMap<String, Option<String>>;

/// Metadata of a schema that say the same of columns which have `changed`.
pub fn adapted(metadata: &HashMap<String, String>, changed: &Changed) -> HashMap<String, String> {
    let mut adapted = metadata.clone();
    if changed.is_empty() {
        // As it is, to the byte: another spelling would be another schema.
        return adapted;
    }
    let mut change = |key: &str, with: &dyn Fn(&str) -> Option<String>| {
        if let Some(text) = adapted.get(key).and_then(|text| with(text)) {
            adapted.insert(key.to_owned(), text);
        }
    };
    change(PANDAS, &|text| pandas(text, changed));
    change(DESCRIPTION, &|text| description(text, changed));
    adapted
}

/// What the description of a frame says of a column of ordered categories: the categories in their order, as text, if it has them;
/// `None` if the column is no such.
pub fn ordered_categories(metadata: &HashMap<String, String>, column: &str) -> Option<Option<String>> {
    let Some(text) = metadata.get(DESCRIPTION) else {
        // Earlier versions had categories apart.
        let earlier: Value = serde_json::from_str(metadata.get(CATEGORIES)?).ok()?;
        return earlier.get(column).map(|categories| Some(categories.to_string()));
    };
    if !text.contains("\"ordered\"") {
        return None;
    }
    let made: Value = serde_json::from_str(text).ok()?;
    let levels = made["index"].as_array().into_iter().flatten();
    let level = levels.filter(|level| level["field"] == column).map(|level| &level["column"]).next();
    let category = level.unwrap_or(&made["columns"][column]);
    let categories = || category.get("categories").map(|made| made.get("texts").unwrap_or(made).to_string());
    (category["ordered"] == true).then(categories)
}

/// Metadata of a schema in which the categories of these columns have no order.
pub fn unordered(metadata: &HashMap<String, String>, columns: &BTreeSet<String>) -> HashMap<String, String> {
    let mut changed = metadata.clone();
    let without = |category: &mut Value| {
        if category.get("ordered").is_some() {
            category["ordered"] = json!(false);
        }
    };
    if let Some(mut made) = metadata.get(PANDAS).and_then(|text| serde_json::from_str::<Value>(text).ok()) {
        let named = |column: &&mut Value| column["field_name"].as_str().is_some_and(|name| columns.contains(name));
        let described = made.get_mut("columns").and_then(Value::as_array_mut);
        described.into_iter().flatten().filter(named).for_each(|column| without(&mut column["metadata"]));
        changed.insert(PANDAS.to_owned(), made.to_string());
    }
    let unordered = |text: &String| -> Option<String> {
        let mut made: Object = serde_json::from_str(text).ok()?;
        let mut described: Object = serde_json::from_str(made.get("columns")?.get()).ok()?;
        for name in columns {
            let Some(column) = described.get(name) else { continue };
            let mut column: Value = serde_json::from_str(column.get()).ok()?;
            without(&mut column);
            described.set(name, &column)?;
        }
        let mut index: Value = serde_json::from_str(made.get("index")?.get()).ok()?;
        for level in index.as_array_mut().into_iter().flatten() {
            if level["field"].as_str().is_some_and(|name| columns.contains(name)) {
                without(&mut level["column"]);
            }
        }
        made.set("columns", &described)?;
        made.set("index", &index)?;
        serde_json::to_string(&made).ok()
    };
    if let Some(text) = metadata.get(DESCRIPTION).and_then(unordered) {
        changed.insert(DESCRIPTION.to_owned(), text);
    }
    changed
}

/// What a value names after the change; `None` if that is gone.
fn name_after<'a>(value: &'a Value, changed: &'a Changed) -> Option<&'a str> {
    let name = value.as_str().unwrap_or_default();
    changed.get(name).map_or(Some(name), |to| to.as_deref())
}

fn pandas(text: &str, changed: &Changed) -> Option<String> {
    let mut made: Value = serde_json::from_str(text).ok()?;
    // A number range is an index that is no column.
    let index = made.get_mut("index_columns")?.as_array_mut()?;
    index.retain_mut(|index| match name_after(index, changed).map(str::to_owned) {
        _ if !index.is_string() => true,
        None => false,
        Some(name) => {
            *index = name.into();
            true
        }
    });
    let index = index.clone();
    let mut labels_changed = false;
    made.get_mut("columns")?.as_array_mut()?.retain_mut(|column| {
        let Some(field) = column.get("field_name") else { return true };
        let Some(name) = name_after(field, changed).map(str::to_owned) else { return false };
        if *field != json!(name) {
            labels_changed |= !index.contains(&json!(name));
            (column["name"], column["field_name"]) = (json!(name), json!(name));
        }
        true
    });
    let texts = json!([{"name": null, "field_name": null, "pandas_type": "unicode", "numpy_type": "object", "metadata": {"encoding": "UTF-8"}}]);
    let are_texts = made["column_indexes"][0]["pandas_type"] == "unicode" && made["column_indexes"][1].is_null();
    if labels_changed && !are_texts {
        made["column_indexes"] = texts;
    }
    serde_json::to_string(&made).ok()
}

fn description(text: &str, changed: &Changed) -> Option<String> {
    let mut made: Object = serde_json::from_str(text).ok()?;
    if made.get("version")?.get() != "1" {
        return None;
    }
    let mut columns: Object = serde_json::from_str(made.get("columns")?.get()).ok()?;
    let mut renamed: Vec<String> =
        made.get("renamed").map_or(Ok(Vec::new()), |names| serde_json::from_str(names.get())).ok()?;
    renamed.retain(|name| !changed.contains_key(name));
    for (name, _) in &mut columns.0 {
        match changed.get(name) {
            None => continue,
            // Labels are found by the places of columns, so it leaves one behind, under a name that no column has.
            Some(None) => name.insert(0, '\0'),
            Some(Some(to)) => {
                renamed.push(to.clone());
                name.clone_from(to);
            }
        }
    }
    let mut index: Value = serde_json::from_str(made.get("index")?.get()).ok()?;
    if let Some(levels) = index.as_array_mut() {
        let before = levels.len();
        levels.retain_mut(|level| {
            let Some(name) = name_after(&level["field"], changed).map(str::to_owned) else { return false };
            if level["field"] != json!(name) {
                (level["field"], level["name"]) = (json!(name), json!(name));
            }
            true
        });
        if levels.len() == 1 && before > 1 {
            made.set("multi", &false)?;
        }
    }
    made.set("columns", &columns)?;
    made.set("index", &index)?;
    if !renamed.is_empty() {
        made.set("renamed", &renamed)?;
    }
    serde_json::to_string(&made).ok()
}

/// A JSON object whose entries keep their order.
struct Object(Vec<(String, Box<RawValue>)>);

impl Object {
    fn get(&self, key: &str) -> Option<&RawValue> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| &**value)
    }

    fn set(&mut self, key: &str, value: &impl Serialize) -> Option<()> {
        let value = to_raw_value(value).ok()?;
        match self.0.iter_mut().find(|(name, _)| name == key) {
            Some((_, there)) => *there = value,
            None => self.0.push((key.to_owned(), value)),
        }
        Some(())
    }
}

impl Serialize for Object {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        self.0.iter().try_for_each(|(name, value)| map.serialize_entry(name, value))?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectVisitor;
        impl<'de> de::Visitor<'de> for ObjectVisitor {
            type Value = Object;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<Object, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Object(entries))
            }
        }
        deserializer.deserialize_map(ObjectVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed() -> Changed {
        [("i".to_owned(), Some("when".to_owned())), ("b".to_owned(), None), ("a".to_owned(), Some("x".to_owned()))]
            .into()
    }

    #[test]
    fn what_is_not_as_expected_is_left_as_it_is() {
        for text in
            ["", "7", "[]", "{}", r#"{"index_columns": 3}"#, r#"{"version": 2}"#, r#"{"version": 1, "columns": []}"#]
        {
            let metadata: HashMap<_, _> =
                [PANDAS, DESCRIPTION, "other"].map(|key| (key.to_owned(), text.to_owned())).into();
            assert_eq!(adapted(&metadata, &changed()), metadata);
        }
    }

    #[test]
    fn categories_lose_their_order() {
        let columns = |ordered: bool| {
            let pandas = json!({"columns": [{"field_name": "c", "metadata": {"num_categories": 1, "ordered": ordered}},
                                            {"field_name": "d", "metadata": {"num_categories": 1, "ordered": true}}]});
            let description = format!(
                r#"{{"version":1,"columns":{{"c":{{"of":"int8","ordered":{ordered},"type":"category"}},"d":{{"ordered":true}}}},"index":[{{"column":{{"ordered":{ordered}}},"field":"i"}}]}}"#
            );
            HashMap::from([(PANDAS.to_owned(), pandas.to_string()), (DESCRIPTION.to_owned(), description)])
        };
        let named = BTreeSet::from(["c".to_owned(), "i".to_owned(), "other".to_owned()]);
        assert_eq!(unordered(&columns(true), &named), columns(false));
    }

    #[test]
    fn columns_are_found_under_their_new_names() {
        let range = json!({"kind": "range"});
        let column = |name: &str| json!({"name": name, "field_name": name});
        let made = json!({"index_columns": ["i", range], "columns": [column("a"), column("b"), column("c"), column("i")],
                          "column_indexes": [{"pandas_type": "int64"}]});
        let after: Value = serde_json::from_str(&pandas(&made.to_string(), &changed()).unwrap()).unwrap();
        assert_eq!(after["index_columns"], json!(["when", range]));
        assert_eq!(after["columns"], json!([column("x"), column("c"), column("when")]));
        assert_eq!(after["column_indexes"][0]["pandas_type"], "unicode");
        let made = r#"{"version":1,"columns":{"c":1,"b":{"type":"period"},"a":"int8"},"index":[{"field":"i","name":null}],"multi":false}"#;
        assert_eq!(
            description(made, &changed()).unwrap(),
            r#"{"version":1,"columns":{"c":1,"\u0000b":{"type":"period"},"x":"int8"},"index":[{"field":"when","name":"when"}],"multi":false,"renamed":["x"]}"#
        );
    }
}
