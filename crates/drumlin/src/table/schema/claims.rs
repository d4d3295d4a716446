//! What frames say of the values of their columns beside their types: which values an Enum of Polars has, and the order of a
//! dictionary's values or of pandas' categories.
//!
//! It is true of the values that came with it. Once a column gets values from a frame that does not say the same, or computed ones,
//! it is said no longer: who believes it takes other values for nulls, or for greater ones. Types stay.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Schema};

use super::frame_metadata::ordered_categories;
use super::stored::StoredSchema;
use crate::base::{Error, Result};
use crate::segment::children;

/// Metadata of a field under which Polars has the values of an Enum.
const ENUMS: [&str; 2] = ["_PL_ENUM_VALUES", "_PL_ENUM_VALUES2"];

/// What is said of a column's values.
#[derive(PartialEq, Eq)]
enum Claim {
    Nothing,
    /// The values, or categories in their order, as text.
    Values(Vec<String>),
    /// Something that cannot be compared with what another frame says.
    Unknown,
}

impl Claim {
    fn of(schema: &Schema, at: usize) -> Self {
        let field = schema.field(at);
        let (mut said, mut unknown) = (Vec::new(), false);
        note(field, &mut said, &mut unknown);
        // Categories are a dictionary that says so, unless dictionaries of such values have no place in a store.
        let apart = !children(field.data_type()).is_empty() || field.extension_type_name().is_some();
        if (unknown || apart)
            && let Some(categories) = ordered_categories(schema.metadata(), field.name())
        {
            unknown = categories.is_none();
            said.extend(categories);
        }
        match (unknown, said.is_empty()) {
            (true, _) => Claim::Unknown,
            (false, true) => Claim::Nothing,
            (false, false) => Claim::Values(said),
        }
    }
}

fn note(field: &Field, said: &mut Vec<String>, unknown: &mut bool) {
    match ENUMS.iter().find_map(|key| field.metadata().get(*key)) {
        Some(values) => said.push(values.clone()),
        None => *unknown |= field.dict_is_ordered() == Some(true),
    }
    children(field.data_type()).iter().for_each(|child| note(child, said, unknown));
}

/// Whether something is said of the values of the column at a place.
fn is_claimed(schema: &Schema, at: usize) -> bool {
    Claim::of(schema, at) != Claim::Nothing
}

/// The columns of `own` of which something is said that is not known of values from a frame of schema `came`.
pub(in crate::table) fn lost(own: &Schema, came: &Schema) -> BTreeSet<usize> {
    let holds = |at: &usize| {
        let Some((place, field)) = came.column_with_name(own.field(*at).name()) else { return true };
        let claim = Claim::of(own, *at);
        claim == Claim::Nothing
            || field.data_type().is_null()
            || claim != Claim::Unknown && claim == Claim::of(came, place)
    };
    (0..own.fields().len()).filter(|at| !holds(at)).collect()
}

/// Those among `columns` of which something is said.
pub(in crate::table) fn claimed(own: &Schema, columns: impl IntoIterator<Item = usize>) -> BTreeSet<usize> {
    columns.into_iter().filter(|at| is_claimed(own, *at)).collect()
}

/// The field of which nothing is said.
pub fn forgotten(field: &Field) -> Field {
    use DataType::*;
    let within = |field: &FieldRef| Arc::new(forgotten(field));
    let data_type = match field.data_type() {
        List(inner) => List(within(inner)),
        LargeList(inner) => LargeList(within(inner)),
        ListView(inner) => ListView(within(inner)),
        LargeListView(inner) => LargeListView(within(inner)),
        FixedSizeList(inner, size) => FixedSizeList(within(inner), *size),
        Map(inner, sorted) => Map(within(inner), *sorted),
        Struct(fields) => Struct(fields.iter().map(within).collect()),
        other => other.clone(),
    };
    let mut metadata = field.metadata().clone();
    metadata.retain(|key, _| !ENUMS.contains(&key.as_str()));
    field.clone().with_data_type(data_type).with_metadata(metadata).with_dict_is_ordered(false)
}

impl StoredSchema {
    /// `SchemaMismatch` if something is said of values that is not known of those of a frame, for calls that cannot change what is
    /// said.
    pub fn check_claims(&self, came: &Schema) -> Result<()> {
        match lost(&self.0, came).first() {
            None => Ok(()),
            Some(at) => Err(Error::schema_mismatch(format!(
                "column '{}' is an Enum or has ordered categories, but the data does not say that it has the same \
                 ones; create the table with plain strings or unordered categories",
                self.0.field(*at).name()
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn field(name: &str, values: Option<&str>, ordered: bool) -> Field {
        let dictionary = DataType::Dictionary(DataType::UInt8.into(), DataType::Utf8.into());
        let metadata = values.map(|values| (ENUMS[1].to_owned(), values.to_owned()));
        Field::new(name, dictionary, true).with_metadata(metadata.into_iter().collect()).with_dict_is_ordered(ordered)
    }

    fn list(inner: Field) -> Field {
        Field::new("c", DataType::List(inner.into()), true)
    }

    #[test]
    fn a_claim_is_lost_unless_the_frame_makes_the_same() {
        let plain = || Field::new("c", DataType::Utf8, true);
        for (own, came, holds) in [
            (field("c", Some("1;a"), true), field("c", Some("1;a"), true), true),
            (field("c", Some("1;a"), true), field("c", Some("1;a1;b"), true), false),
            (field("c", Some("1;a"), true), field("c", None, false), false),
            (field("c", Some("1;a"), true), plain(), false),
            (field("c", Some("1;a"), true), Field::new("c", DataType::Null, true), true),
            (field("c", Some("1;a"), true), Field::new("other", DataType::Utf8, true), true),
            // The order of another dictionary may be another.
            (field("c", None, true), field("c", None, true), false),
            (field("c", None, false), plain(), true),
            (plain(), field("c", Some("1;a"), true), true),
            (list(field("item", Some("1;a"), true)), list(field("item", Some("1;b"), true)), false),
        ] {
            let [own, came] = [own, came].map(|field| Schema::new(vec![field]));
            assert_eq!(lost(&own, &came).is_empty(), holds, "{own:?} {came:?}");
            let forgotten = Schema::new(vec![forgotten(own.field(0))]);
            let stored = [&own, &forgotten].map(|schema| StoredSchema::plain(Arc::new(schema.clone())));
            assert_eq!(stored[0] == stored[1], claimed(&own, [0]).is_empty());
            assert!(lost(&forgotten, &came).is_empty() && claimed(&forgotten, [0]).is_empty());
        }
    }

    #[test]
    fn categories_of_pandas_are_compared_in_their_order() {
        let of = |description: &str| {
            let metadata = HashMap::from([("drumlin.pandas".to_owned(), description.to_owned())]);
            Schema::new_with_metadata(vec![field("c", None, true)], metadata)
        };
        let ordered =
            r#"{"version":1,"columns":{"c":{"type":"category","ordered":true,"categories":["b","a"]}},"index":[]}"#;
        assert!(lost(&of(ordered), &of(ordered)).is_empty());
        for other in [ordered.replace(r#""b","a""#, r#""a","b""#), ordered.replace(r#","categories":["b","a"]"#, "")] {
            assert_eq!(lost(&of(ordered), &of(&other)).len(), 1);
            assert_eq!(lost(&of(&other), &of(ordered)).len(), 1);
        }
    }
}
