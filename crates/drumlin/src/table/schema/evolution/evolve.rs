//! How the columns of a table change while its rows stay: the schema that a change of columns gives, or a frame with
//! other columns. Only the schema changes; row groups keep the one that they were written with, and are read as the
//! version says.
//!
//! A reader looks a column up by its id (column.rs), so after a rename, or with a new column under an old name, it
//! reads no other column's values, and every version is read, sorted and looked up by its own names. What a row group
//! lacks is the column's default or null; what is narrower is cast. A vacuum writes row groups in the schema of all
//! versions that see them, so dropped columns go; where versions with several schemas see a row group, it keeps its
//! own.
//!
//! A frame with other columns brings its schema in the same version. Rows in memory have one schema, so they become row
//! groups first.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::Array;
use arrow::datatypes::{DataType, FieldRef, Schema, SchemaRef};

use super::alter::{Alter, Altered, SchemaMode};
use super::columns::{Columns, forbidden_nulls};
use crate::base::planted::{Bug, planted};
use crate::base::{Cancel, Error, Pool, Result, TypeName};
use crate::block::BlockReader;
use crate::filter::Filter;
use crate::segment::Form;
use crate::table::read::group_reader::GroupReader;
use crate::table::schema::arrays::find;
use crate::table::schema::claims::{claimed, lost};
use crate::table::schema::column::{Column, check_ttl};
use crate::table::schema::compression::{compressed_as, compression_of};
use crate::table::schema::conform::{conform_value, first_misfit};
use crate::table::schema::constraints::Check;
use crate::table::{Rows, StoredSchema, TableState};

impl TableState {
    /// What a change of columns comes to; `None` if nothing changes.
    pub fn altered(&self, alter: &Alter) -> Result<Option<Altered>> {
        let mut columns = Columns::of(self)?;
        match alter {
            Alter::Add(added) => columns.add(added)?,
            Alter::Drop(names) => columns.drop(names)?,
            Alter::Rename(names) => columns.rename(names)?,
            Alter::Widen(types) => columns.widen(types)?,
            Alter::AddConstraints(constraints) => columns.constrain(constraints)?,
            Alter::DropConstraints(names) => columns.release(names)?,
            Alter::SetTtl(ttl) => columns.set_ttl(ttl)?,
            Alter::DropTtl => columns.drop_ttl()?,
        }
        let (doubtful, forbidden) = (std::mem::take(&mut columns.doubtful), std::mem::take(&mut columns.forbidden));
        // What is checked of all rows is not checked of those that nobody sees.
        let changes_ttl = columns.changes_ttl();
        let expires = self.expires() && (!doubtful.is_empty() || !forbidden.is_empty() || changes_ttl);
        Ok(columns.schema()?.map(|schema| Altered { schema, doubtful, forbidden, expires, changes_ttl }))
    }

    /// The schema of a frame that replaces all rows, with the constraints and the compression of this table, in its order, and the values with which
    /// columns were added that are the same in it. `SchemaMismatch` if the frame lacks a column of a check, `InvalidArgument` of a unique index.
    pub fn constrained(&self, came: StoredSchema) -> Result<StoredSchema> {
        let own = self.schema().map(|own| compression_of(&own.0)).transpose()?.flatten();
        let compressed = own.map(|own| compressed_as(&came.0, None, Some(own)).metadata().clone());
        let came = compressed.map_or(came.clone(), |metadata| came.with_metadata(metadata));
        let came = self.with_own_fills(if planted(Bug::NewIds) { came } else { self.with_own_ids(came) });
        self.check_unique_columns(&came)?;
        let came = if planted(Bug::ForgetOrder) { came } else { came.with_order(self.order(), &self.spec) };
        self.with_own_constraints(came)
    }

    /// The schema of another table's version that replaces all rows, with the constraints of this table beside its own; `None` if it has
    /// them. `SchemaMismatch` if it lacks a column that a check refers to.
    pub fn constrained_beside(&self, came: &StoredSchema) -> Result<Option<StoredSchema>> {
        let constrained = self.with_own_constraints(came.clone())?;
        Ok((constrained != *came && !planted(Bug::ForgetConstraints)).then_some(constrained))
    }

    /// Whether a schema that [`TableState::constrained`] has made of a frame is what it would make now.
    pub fn takes_in_place(&self, came: &StoredSchema) -> bool {
        let Some(own) = self.schema() else { return true };
        let plain = own.known_columns().is_none() && came.known_columns().is_none();
        let same_id = |field: &FieldRef| came.id_of(field.name()).is_none_or(|id| own.id_of(field.name()) == Some(id));
        let same_ids = plain || own.0.fields().iter().all(same_id) || planted(Bug::NewIds);
        same_ids && own.same_constraints(came) && self.check_unique_columns(came).is_ok()
    }

    /// A column that it has, too, stays the same column, and no other becomes it.
    fn with_own_ids(&self, came: StoredSchema) -> StoredSchema {
        // Usually all are known by their names, in both.
        let Some(own) = self.schema().filter(|own| own.known_columns().is_some()) else { return came };
        let mut ids: BTreeSet<String> = own.ids().map(str::to_owned).collect();
        let mut columns = came.columns();
        for (field, column) in came.0.fields().iter().zip(&mut columns) {
            let id = own.id_of(field.name()).map(str::to_owned);
            column.id = id.unwrap_or_else(|| Column::fresh(field.name(), &ids).id);
            ids.insert(column.id.clone());
        }
        StoredSchema::with_columns(came.0.clone(), columns, came.checks().to_vec())
    }

    /// What a column was added with is the default of later rows; it goes with the column once that becomes another.
    fn with_own_fills(&self, came: StoredSchema) -> StoredSchema {
        let Some(own) = self.schema() else { return came };
        let (before, mut columns) = (own.columns(), came.columns());
        for (field, column) in came.0.fields().iter().zip(&mut columns) {
            if let Some((at, same)) = own.0.fields().find(field.name())
                && same.data_type() == field.data_type()
            {
                *column = column.clone().filled_as(&before[at]);
            }
        }
        StoredSchema::with_columns(came.0.clone(), columns, came.checks().to_vec())
    }

    fn with_own_constraints(&self, came: StoredSchema) -> Result<StoredSchema> {
        let order = came.order(&self.spec).to_vec();
        let Some(own) = self.schema().filter(|own| own.is_constrained()) else { return Ok(came) };
        for check in own.checks() {
            if let Some(name) = check.columns()?.iter().find(|name| came.0.index_of(name).is_err()) {
                return Err(Error::schema_mismatch(format!(
                    "the data lacks column '{name}', to which the check '{}' ({}) refers; drop the check first",
                    check.name, check.text
                )));
            }
        }
        let before = own.columns();
        let lacks = |(field, column): &(&FieldRef, &Column)| column.not_null && came.0.index_of(field.name()).is_err();
        if let Some((field, _)) = own.0.fields().iter().zip(&before).find(lacks) {
            return Err(Error::schema_mismatch(format!(
                "the data lacks column '{}', which takes no nulls; drop that constraint first",
                field.name()
            )));
        }
        // Rows that have expired by a rule of their own must not be seen by another.
        let expires = came.expires();
        if let Some(ttl) = own.ttl().filter(|ttl| !expires && came.0.index_of(&ttl.column).is_err()) {
            return Err(Error::schema_mismatch(format!(
                "the data lacks column '{}', which says when rows expire; drop the time to live first",
                ttl.column
            )));
        }
        let (mut fields, mut columns) = (came.0.fields().to_vec(), came.columns());
        for (field, column) in fields.iter_mut().zip(&mut columns) {
            let Ok(at) = own.0.index_of(field.name()) else { continue };
            if before[at].not_null {
                *field = Arc::new(field.as_ref().clone().with_nullable(false));
            }
            let default = before[at].later_value(own.0.field(at).data_type()).flatten().transpose()?;
            let default = default.map(|value| {
                conform_value(&value, field).map_err(|e| e.context("its default does not fit the data; drop it first"))
            });
            let ttl = if expires { column.ttl } else { before[at].ttl };
            if let Some(after) = ttl {
                check_ttl(field, after)
                    .map_err(|e| e.context("the data does not fit the time to live; drop it first"))?;
            }
            *column = column.clone().constrained_as(&before[at], default.transpose()?.as_ref())?;
            column.ttl = ttl;
            if let Some(generator) = &before[at].generator {
                generator.check(field).map_err(|e| e.context("its default does not fit the data; drop it first"))?;
            }
        }
        let schema = Arc::new(Schema::new_with_metadata(fields, came.0.metadata().clone()));
        let mut checks = own.checks().to_vec();
        let others = came.checks().iter().filter(|check| own.checks().iter().all(|own| own.name != check.name));
        checks.extend(others.cloned());
        let constrained = StoredSchema::with_columns(schema, columns, checks).with_order(&order, &self.spec);
        let constrained = constrained.check_new()?;
        constrained.bound_checks()?;
        Ok(constrained)
    }

    /// What no row of a version with the schema `came` may be if it is to be seen in the schema `constrained`, and what says so.
    pub fn forbidden(came: &StoredSchema, constrained: &StoredSchema) -> Result<Vec<(String, Filter)>> {
        let new = constrained.checks().iter().filter(|check| !came.checks().contains(check));
        let mut forbidden = new.map(Check::forbidden).collect::<Result<Vec<_>>>()?;
        for (field, came) in constrained.0.fields().iter().zip(came.0.fields()) {
            if came.is_nullable() && !field.is_nullable() {
                forbidden.push(forbidden_nulls(field)?);
            }
        }
        Ok(forbidden)
    }

    /// The schema that takes in rows of the schema `came`; `None` if that is the newest version's. What does not fit it either
    /// is found when the rows are converted.
    pub fn evolved(&self, came: &Schema, mode: SchemaMode) -> Result<Option<StoredSchema>> {
        let own = self.schema().ok_or_else(|| Error::invalid("the table has no version yet"))?;
        let fits = |field: &FieldRef| {
            own.0.field_with_name(field.name()).is_ok_and(|own| own.data_type() == field.data_type())
        };
        let lost = lost(&own.0, came);
        // Usually all columns are as they are.
        if lost.is_empty() && came.fields().iter().all(fits) {
            return Ok(None);
        }
        let mut columns = Columns::of(self)?;
        columns.forget(lost);
        columns.take_in(came, mode)?;
        columns.schema()
    }

    /// The schema after `columns`, by place, got values that are computed; `None` if that is the newest version's.
    pub fn with_computed(&self, columns: impl IntoIterator<Item = usize>) -> Result<Option<StoredSchema>> {
        let mut changed = Columns::of(self)?;
        changed.forget(claimed(&changed.own.0, columns));
        changed.schema()
    }

    /// The same after columns got values of the columns of a frame with the same names.
    pub fn with_values_of(&self, came: &Schema) -> Result<Option<StoredSchema>> {
        let mut changed = Columns::of(self)?;
        changed.forget(lost(&changed.own.0, came));
        changed.schema()
    }
}

/// `SchemaMismatch`, naming a value, if a row group that the newest version sees has one in the column called `name` that is
/// none of type `data_type`. Also looks at rows that are deleted: they are decoded with the others.
pub fn check_widening(
    reader: &BlockReader,
    pool: &Pool,
    table: &TableState,
    name: &str,
    data_type: &DataType,
    cancel: &Cancel,
) -> Result<()> {
    let newest = table.newest().ok_or_else(|| Error::invalid("the table has no version yet"))?.version;
    let schema: &SchemaRef = &table.schema_of(newest)?.0;
    let column = [find(schema, name)?];
    let wide = TypeName(data_type);
    let seen = table.groups.iter().filter(|group| table.visible(group, newest) != Rows::None);
    pool.map(seen.collect(), |group| {
        cancel.check()?;
        let values = GroupReader::open(reader, table, newest, group)?.decode(schema, &column, Form::Exact)?.remove(0);
        match first_misfit(&values, data_type)? {
            None => Ok(()),
            Some(value) => Err(Error::schema_mismatch(format!(
                "column '{name}' of type {} cannot be widened to {wide}: {value} is not a valid {wide} (if that row was \
                 deleted, a vacuum removes it)",
                TypeName(values.data_type())
            ))),
        }
    })?;
    Ok(())
}
