//! What a table knows of a column beside its field: the id that row groups of all its schemas know it by, the value that rows have
//! which are older than it, and its constraints. All are stored in the field's metadata, under names that frames may not use.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::{DataType, Field, FieldRef};
use bytes::Bytes;

use crate::base::{Error, Result, TypeName, from_hex, to_hex};
use crate::segment;
use crate::segment::Form;
use crate::table::write::generator::Generator;

/// The metadata that say which column a field is, what older rows have in it, what later ones that lack it do, if that is something
/// else, whether it takes no nulls by a constraint, what makes its values in later rows that lack it, and how many microseconds after
/// its time a row expires.
pub(in crate::table) const RESERVED: [&str; 6] =
    ["drumlin.column", "drumlin.default", "drumlin.later", "drumlin.not-null", "drumlin.generator", "drumlin.ttl"];

/// One column of a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::table) struct Column {
    /// What row groups know it by.
    pub id: String,
    /// A segment of one row with the value that rows have which are older; `None` for null.
    fill: Option<Bytes>,
    /// The same for later rows that lack it, if it was set for them; empty for null.
    later: Option<Bytes>,
    /// Whether a constraint says that it takes no nulls, rather than the frame that it came with.
    pub not_null: bool,
    /// What makes values for later rows that lack it, if that was set last; then `later` is null.
    pub generator: Option<Generator>,
    /// How many microseconds after its time a row expires, if rows do.
    pub ttl: Option<i64>,
}

impl Column {
    /// A column known by the name that it was made with.
    pub fn named(name: &str) -> Self {
        Self { id: name.to_owned(), fill: None, later: None, not_null: false, generator: None, ttl: None }
    }

    /// A new column called `name`, whose id is none of `taken`.
    pub fn fresh(name: &str, taken: &BTreeSet<String>) -> Self {
        let numbered = (1_u64..).map(|n| format!("{name}#{n}"));
        let mut ids = std::iter::once(name.to_owned()).chain(numbered);
        let id = ids.find(|id| !taken.contains(id)).expect("there are more numbers than columns");
        Self { id, ..Self::named(name) }
    }

    /// The same with a value that older rows have, an array of one row, which is not null.
    pub fn with_fill(self, value: &ArrayRef) -> Result<Self> {
        Ok(Self { fill: Some(segment::encode(value)?.bytes.into()), ..self })
    }

    /// The same with what another of its type was added with, if later rows that lack that one have it.
    pub fn filled_as(self, other: &Self) -> Self {
        match &other.fill {
            Some(fill) if other.later.is_none() => Self { fill: Some(fill.clone()), ..self },
            _ => self,
        }
    }

    /// The same with a value that later rows have which lack it, an array of one row that is not null; `None` for null.
    pub fn with_default(self, value: Option<&ArrayRef>) -> Result<Self> {
        let later = match value {
            Some(value) => segment::encode(value)?.bytes.into(),
            None => Bytes::new(),
        };
        Ok(Self { later: Some(later), generator: None, ..self })
    }

    /// The same with what makes values for later rows which lack it.
    pub fn with_generator(self, generator: Generator) -> Self {
        Self { later: Some(Bytes::new()), generator: Some(generator), ..self }
    }

    /// The same with the constraints of another too, whose default is `default` in its own type.
    pub fn constrained_as(self, other: &Self, default: Option<&ArrayRef>) -> Result<Self> {
        let own = Self { not_null: self.not_null || other.not_null, ..self };
        match (&other.generator, default) {
            (Some(generator), _) => Ok(own.with_generator(generator.clone())),
            (None, Some(_)) => own.with_default(default),
            (None, None) => Ok(own),
        }
    }

    /// The same after its field has got another type than `came`; `into` makes values of it, and fails if that would change them.
    pub fn widened(self, came: &DataType, into: impl Fn(&ArrayRef) -> Result<ArrayRef>) -> Result<Self> {
        let (fill, later) = (self.fill_value(came).transpose()?, self.later_value(came));
        let widened = match fill {
            Some(value) => self.with_fill(&into(&value)?)?,
            None => self,
        };
        match later {
            Some(Some(value)) => widened.with_default(Some(&into(&value?)?)),
            _ => Ok(widened),
        }
    }

    /// Whether nothing is known of it beside its field.
    pub fn is_plain(&self, field: &Field) -> bool {
        self.id == *field.name() && !self.is_constrained() && self.fill.is_none()
    }

    /// Whether both have the same constraints; of defaults in different types only whether there is one.
    pub fn same_constraints(&self, other: &Self, same_type: bool) -> bool {
        let default = |column: &Self| column.later.clone().or(column.fill.clone()).filter(|bytes| !bytes.is_empty());
        let (own, others) = (default(self), default(other));
        let same = self.not_null == other.not_null && self.generator == other.generator && self.ttl == other.ttl;
        same && if same_type { own == others } else { own.is_some() == others.is_some() }
    }

    /// Whether it has a constraint.
    pub fn is_constrained(&self) -> bool {
        self.later.is_some() || self.not_null || self.ttl.is_some()
    }

    /// What holds the value that older rows have; `None` for null.
    pub fn fill_bytes(&self) -> Option<Bytes> {
        self.fill.clone()
    }

    /// The value that older rows have, an array of one row; `None` for null.
    pub fn fill_value(&self, data_type: &DataType) -> Option<Result<ArrayRef>> {
        self.fill.as_ref().map(|bytes| segment::decode(bytes.clone(), 1, data_type, Form::Exact))
    }

    /// What later rows have that lack it, if that was set; `None` within for null.
    pub fn later_value(&self, data_type: &DataType) -> Option<Option<Result<ArrayRef>>> {
        let value = |bytes: &Bytes| segment::decode(bytes.clone(), 1, data_type, Form::Exact);
        self.later.as_ref().map(|bytes| (!bytes.is_empty()).then(|| value(bytes)))
    }

    /// The value that later rows have which lack it, an array of one row; `None` for null.
    pub fn default_value(&self, data_type: &DataType) -> Option<Result<ArrayRef>> {
        self.later_value(data_type).unwrap_or_else(|| self.fill_value(data_type))
    }

    /// The column of a stored field, and the field without what is stored of it.
    pub fn read(field: &FieldRef) -> Result<(Field, Self)> {
        let mut metadata = field.metadata().clone();
        let [id, fill, later, not_null, generator, ttl] = RESERVED.map(|key| metadata.remove(key));
        let bytes = |text: Option<String>| {
            let bytes = text.map(|text| from_hex(&text).map(Bytes::from));
            match bytes {
                Some(None) => Err(Error::corrupt("the default of a column is not hexadecimal")),
                other => Ok(other.flatten()),
            }
        };
        let id = id.unwrap_or_else(|| field.name().clone());
        let generator = generator
            .map(|text| serde_json::from_str::<Generator>(&text))
            .transpose()
            .map_err(|e| Error::corrupt("what makes the default of a column is damaged").with_source(e.to_string()))?;
        if let Some(generator) = &generator {
            generator.check(field).map_err(|e| Error::corrupt(e.message().to_owned()))?;
        }
        let ttl = ttl.map(|text| text.parse::<i64>()).transpose();
        let ttl =
            ttl.map_err(|e| Error::corrupt("the time to live of a column is damaged").with_source(e.to_string()))?;
        if let Some(after) = ttl {
            check_ttl(field, after).map_err(|e| Error::corrupt(e.message().to_owned()))?;
        }
        let (fill, later) = (bytes(fill)?, bytes(later)?);
        if generator.is_some() && later.as_ref().is_none_or(|bytes| !bytes.is_empty()) {
            return Err(Error::corrupt("a column has a default, and what makes another"));
        }
        let column = Self { id, fill, later, not_null: not_null.is_some(), generator, ttl };
        let values = [column.fill_value(field.data_type()), column.default_value(field.data_type())];
        for value in values.into_iter().flatten() {
            match value {
                Err(e) => return Err(Error::corrupt("the default of a column is damaged").with_source(e.to_string())),
                Ok(value) if value.len() != 1 => {
                    return Err(Error::corrupt("the default of a column is not one value"));
                }
                Ok(_) => {}
            }
        }
        Ok((field.as_ref().clone().with_metadata(metadata), column))
    }

    /// The field as it is stored.
    pub fn write(&self, field: &FieldRef) -> FieldRef {
        if self.is_plain(field) {
            return field.clone();
        }
        let mut metadata = field.metadata().clone();
        metadata.insert(RESERVED[0].to_owned(), self.id.clone());
        metadata.extend(self.fill.as_ref().map(|bytes| (RESERVED[1].to_owned(), to_hex(bytes))));
        metadata.extend(self.later.as_ref().map(|bytes| (RESERVED[2].to_owned(), to_hex(bytes))));
        metadata.extend(self.not_null.then(|| (RESERVED[3].to_owned(), String::new())));
        let generator = self.generator.as_ref().map(|own| serde_json::to_string(own).expect("it is a plain value"));
        metadata.extend(generator.map(|text| (RESERVED[4].to_owned(), text)));
        metadata.extend(self.ttl.map(|after| (RESERVED[5].to_owned(), after.to_string())));
        Arc::new(field.as_ref().clone().with_metadata(metadata))
    }
}

/// Checks that rows may expire `after` microseconds after the times in a column.
pub(in crate::table) fn check_ttl(field: &Field, after: i64) -> Result<()> {
    let (name, data_type) = (field.name(), field.data_type());
    if !matches!(data_type, DataType::Timestamp(..)) {
        return Err(Error::invalid(format!(
            "column '{name}' of type {} cannot say when rows expire; expected a timestamp",
            TypeName(data_type)
        )));
    }
    match after {
        0.. => Ok(()),
        _ => Err(Error::invalid(format!("rows cannot expire {after} microseconds after '{name}'; expected 0 or more"))),
    }
}

/// The only value of an array of one row, `rows` times.
pub fn repeated(value: &ArrayRef, rows: usize) -> Result<ArrayRef> {
    Ok(take(value, &UInt32Array::from(vec![0; rows]), None)?)
}
