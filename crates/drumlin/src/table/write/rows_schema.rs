//! Which schema rows need that come to a table: for all ways to bring rows.

use arrow::datatypes::SchemaRef;

use crate::base::Result;
use crate::segment::Compression;
use crate::table::order::sort_columns::{check_sort, sorted_schema};
use crate::table::schema::compression::compressed_as;
use crate::table::schema::conform::Conform;
use crate::table::schema::evolution::alter::SchemaMode;
use crate::table::{Generators, StoredSchema, TableState};

/// The schema that rows of a frame are converted to.
#[derive(Clone)]
pub struct RowsSchema {
    /// The table's, from these rows on.
    pub stored: StoredSchema,
    /// Whether the table, whose rows stay, does not have it yet.
    pub evolves: bool,
    /// If rows may lack columns, which have their defaults then, or are null: what makes these.
    fills: Option<Generators>,
}

impl RowsSchema {
    /// Of rows that are known to have this one.
    pub fn known(stored: StoredSchema) -> Self {
        Self { stored, evolves: false, fills: None }
    }

    /// Of rows with the columns of `came` that come beside those of `table`; `generators` make values for those that they lack.
    ///
    /// # Errors
    /// `SchemaMismatch` if `mode` does not let the table take them.
    pub fn added(table: &TableState, came: &SchemaRef, mode: SchemaMode, generators: &Generators) -> Result<Self> {
        let evolved = table.evolved(came, mode)?;
        let (evolves, fills) = (evolved.is_some(), (mode == SchemaMode::Evolve).then(|| generators.clone()));
        let stored = evolved.unwrap_or_else(|| table.schema().expect("every table has a version").clone());
        Ok(Self { stored, evolves, fills })
    }

    /// The same; rows may lack columns.
    pub fn filling(self, generators: Generators) -> Self {
        Self { fills: Some(generators), ..self }
    }

    /// Of rows with the columns of `came` that replace all rows of a table, or make one in the order `sort`. `asked` is how they are to be
    /// compressed, `new` how new tables are unless something else is said.
    ///
    /// # Errors
    /// `InvalidArgument` if they cannot be in that order, `SchemaMismatch` if a check of the table refers to a column that they lack.
    pub fn whole(
        existing: Option<&TableState>,
        came: &SchemaRef,
        sort: &[String],
        asked: Option<Compression>,
        new: Option<Compression>,
    ) -> Result<Self> {
        let came = compressed_as(came, asked, new.filter(|_| existing.is_none()));
        let schema = StoredSchema::new(sorted_schema(&came, sort))?;
        check_sort(sort, &schema.0)?;
        Ok(Self::known(match existing {
            Some(table) => table.constrained(schema)?,
            None => schema,
        }))
    }

    /// Converts rows to it, and tests what the table asks of them. Messages begin with `table`.
    pub fn conform(&self, table: &str) -> Result<Conform> {
        let fill = self.fills.clone().map(|generators| (self.stored.clone(), generators));
        let conform = Conform::new(self.stored.0.clone()).named(table).filling(fill);
        Ok(conform.checking(self.stored.bound_checks()?))
    }
}
