//! How the rows of a table are compressed: said in the metadata of its schema, so that all who write it (workers, later
//! writers) do the same. It changes which encodings are tried (scheme.rs), not the format.

use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};

use crate::base::Result;
use crate::segment::Compression;

/// The metadata of a schema that say how its columns are compressed.
const COMPRESSION: &str = "drumlin.compression";

/// What a schema says. `InvalidArgument` if that is not known.
pub fn compression_of(schema: &Schema) -> Result<Option<Compression>> {
    schema.metadata().get(COMPRESSION).map(|name| Compression::parse(name)).transpose()
}

/// The same schema, which says what is asked for, or else what it said before, or else `default`.
pub fn compressed_as(schema: &SchemaRef, asked: Option<Compression>, default: Option<Compression>) -> SchemaRef {
    let said = schema.metadata().contains_key(COMPRESSION);
    let Some(compression) = asked.or(default.filter(|_| !said)) else { return schema.clone() };
    let mut metadata = schema.metadata().clone();
    metadata.insert(COMPRESSION.to_owned(), compression.name().to_owned());
    Arc::new(Schema::new_with_metadata(schema.fields().clone(), metadata))
}
