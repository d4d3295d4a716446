//! The columns of a table, while they are changed: each change is checked on its own, and gives a schema at the end.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::{DataType, Field, FieldRef, Schema};

use super::alter::{Fill, NewColumn, SchemaMode};
use super::common_type;
use super::common_type::widens;
use crate::base::planted::{Bug, planted};
use crate::base::{Error, Result, TypeName};
use crate::filter::Filter;
use crate::table::schema::arrays::find;
use crate::table::schema::claims::forgotten;
use crate::table::schema::column::{Column, check_ttl};
use crate::table::schema::conform::{conform_value, may_be_exact};
use crate::table::schema::constraints::{Check, ConstraintNames, Constraints};
use crate::table::schema::frame_metadata::{Changed, adapted, unordered};
use crate::table::{StoredSchema, TableCodec, TableState, TimeToLive, sorted_schema};

/// The columns of a table, while they are changed.
pub(in crate::table) struct Columns<'a> {
    table: &'a TableState,
    pub own: &'a StoredSchema,
    fields: Vec<FieldRef>,
    columns: Vec<Column>,
    checks: Vec<Check>,
    /// The columns that the table is ordered by.
    order: Vec<String>,
    /// Names that changed, as metadata of the schema have them.
    changed: Changed,
    /// Columns of whose values nothing is said any more.
    forgotten: BTreeSet<String>,
    pub doubtful: Vec<(String, DataType)>,
    pub forbidden: Vec<(String, Filter)>,
}

impl<'a> Columns<'a> {
    pub fn of(table: &'a TableState) -> Result<Self> {
        let own = table.schema().ok_or_else(|| Error::invalid("the table has no version yet"))?;
        let (fields, columns, checks) = (own.0.fields().to_vec(), own.columns(), own.checks().to_vec());
        let order = table.order().to_vec();
        Ok(Self {
            table,
            own,
            fields,
            columns,
            checks,
            order,
            changed: Changed::new(),
            forgotten: BTreeSet::new(),
            doubtful: Vec::new(),
            forbidden: Vec::new(),
        })
    }

    /// The place of a column that may be changed.
    fn place(&self, name: &str, what: &str) -> Result<usize> {
        let at = find(&self.own.0, name)?;
        match self.table.order().contains(self.own.0.field(at).name()) {
            true => Err(Error::invalid(format!(
                "column '{name}' is {}, so it cannot be {what}",
                if self.table.spec.keyed { "part of the key" } else { "a column that the table is sorted by" }
            ))),
            false => Ok(at),
        }
    }

    /// Fails if a check refers to a column.
    fn check_free(&self, at: usize, what: &str) -> Result<()> {
        let name = self.own.0.field(at).name();
        for check in &self.checks {
            if check.columns()?.contains(name) {
                return Err(Error::invalid(format!(
                    "column '{name}' cannot be {what}: the check '{}' ({}) refers to it; drop the check first",
                    check.name, check.text
                )));
            }
        }
        Ok(())
    }

    pub fn add(&mut self, added: &[NewColumn]) -> Result<()> {
        let mut ids = self.table.known_ids();
        for NewColumn { field, fill } in added {
            let name = field.name();
            if self.fields.iter().any(|there| there.name() == name) {
                return Err(Error::already_exists(format!("column '{name}' already exists")));
            }
            let field = match fill {
                Fill::Null => self.table.as_kept(field),
                _ => self.table.as_kept(&forgotten(field)),
            };
            let mut column = Column::fresh(name, &ids);
            match fill {
                Fill::Default(value) if value.logical_null_count() == 0 => {
                    column = column.with_fill(&conform_value(value, &field)?)?;
                }
                Fill::Computed(_) if !field.is_nullable() => {
                    return Err(Error::invalid(format!(
                        "column '{name}' takes no nulls, but a computed column is null until its values are computed; \
                         make it nullable"
                    )));
                }
                _ if !field.is_nullable() => {
                    return Err(Error::invalid(format!(
                        "column '{name}' takes no nulls; give the value that existing rows get"
                    )));
                }
                Fill::Computed(expression) => drop(expression.bind(&self.own.0, field.data_type())?),
                _ => {}
            }
            ids.insert(column.id.clone());
            self.fields.push(field);
            self.columns.push(column);
        }
        Ok(())
    }

    pub fn drop(&mut self, names: &[String]) -> Result<()> {
        let gone = names.iter().map(|name| self.place(name, "dropped")).collect::<Result<BTreeSet<_>>>()?;
        if gone.len() == self.fields.len() {
            return Err(Error::invalid("a table needs at least one column; drop the table instead"));
        }
        for at in gone.into_iter().rev() {
            self.check_free(at, "dropped")?;
            if self.columns[at].ttl.is_some() {
                return Err(Error::invalid(format!(
                    "column '{}' cannot be dropped: it says when rows expire; drop the time to live first",
                    self.fields[at].name()
                )));
            }
            self.changed.insert(self.fields[at].name().clone(), None);
            self.fields.remove(at);
            self.columns.remove(at);
        }
        Ok(())
    }

    pub fn rename(&mut self, names: &[(String, String)]) -> Result<()> {
        let mut renamed = BTreeSet::new();
        for (from, to) in names {
            let at = find(&self.own.0, from)?;
            self.check_free(at, "renamed")?;
            if !renamed.insert(at) {
                return Err(Error::invalid(format!("column '{from}' is renamed twice")));
            }
            self.fields[at] = Arc::new(self.fields[at].as_ref().clone().with_name(to));
            if planted(Bug::ColumnsByName) {
                self.columns[at] = Column::named(to);
            }
            let before = self.own.0.field(at).name();
            self.changed.insert(before.clone(), Some(to.clone()));
            if let Some(place) = self.table.order().iter().position(|name| name == before) {
                self.order[place].clone_from(to);
            }
        }
        Ok(())
    }

    pub fn widen(&mut self, types: &[(String, DataType)]) -> Result<()> {
        for (name, data_type) in types {
            let at = self.place(name, "widened")?;
            let came = self.fields[at].data_type().clone();
            if came == *data_type {
                continue;
            }
            let exact = came == DataType::Null || widens(&came, data_type);
            let extended = self.fields[at].extension_type_name().is_some();
            if extended || !exact && !may_be_exact(&came, data_type) {
                return Err(Error::schema_mismatch(format!(
                    "column '{name}' of type {} cannot be widened to {}, which does not hold all of its values",
                    TypeName(&came),
                    TypeName(data_type)
                )));
            }
            if !exact {
                self.doubtful.push((self.fields[at].name().clone(), data_type.clone()));
            }
            self.retype(at, data_type)?;
        }
        Ok(())
    }

    pub fn constrain(&mut self, Constraints { checks, not_null, defaults, generators }: &Constraints) -> Result<()> {
        for (name, filter) in checks {
            if name.is_empty() || self.checks.iter().any(|check| check.name == *name) {
                return Err(match name.is_empty() {
                    true => Error::invalid("a check needs a name"),
                    false => Error::already_exists(format!("check '{name}' already exists; drop it first")),
                });
            }
            let check = Check { name: name.clone(), text: filter.to_string() };
            self.forbidden.push(check.forbidden()?);
            self.checks.push(check);
        }
        for name in not_null {
            let at = find(&self.own.0, name)?;
            let field = &self.fields[at];
            if self.is_of_key(at) {
                // A key takes none in any case.
                continue;
            }
            if field.is_nullable() {
                self.forbidden.push(forbidden_nulls(field)?);
            }
            self.fields[at] = Arc::new(field.as_ref().clone().with_nullable(false));
            self.columns[at].not_null = true;
        }
        for (name, value) in defaults {
            let at = find(&self.own.0, name)?;
            if value.logical_null_count() > 0 {
                return Err(Error::invalid(format!(
                    "column '{name}': a default must not be null; without a default, rows that lack the column get null"
                )));
            }
            let value = conform_value(value, &self.fields[at])?;
            self.columns[at] = self.columns[at].clone().with_default(Some(&value))?;
        }
        for (name, generator) in generators {
            let at = find(&self.own.0, name)?;
            generator.check(&self.fields[at])?;
            self.columns[at] = self.columns[at].clone().with_generator(generator.clone());
        }
        Ok(())
    }

    pub fn release(&mut self, ConstraintNames { checks, not_null, defaults }: &ConstraintNames) -> Result<()> {
        for name in checks {
            let at = self.checks.iter().position(|check| check.name == *name);
            self.checks.remove(at.ok_or_else(|| Error::not_found(format!("check '{name}' does not exist")))?);
        }
        for name in not_null {
            let at = find(&self.own.0, name)?;
            if self.is_of_key(at) {
                return Err(Error::invalid(format!("column '{name}' is part of the key, which takes no nulls")));
            }
            if self.fields[at].is_nullable() {
                return Err(Error::not_found(format!("column '{name}' already takes nulls")));
            }
            self.fields[at] = Arc::new(self.fields[at].as_ref().clone().with_nullable(true));
            self.columns[at].not_null = false;
        }
        for name in defaults {
            let at = find(&self.own.0, name)?;
            if !self.own.has_default(self.own.0.field(at).name()) {
                return Err(Error::not_found(format!("column '{name}' has no default")));
            }
            self.columns[at] = self.columns[at].clone().with_default(None)?;
        }
        Ok(())
    }

    pub fn set_ttl(&mut self, TimeToLive { column, after_micros }: &TimeToLive) -> Result<()> {
        let at = find(&self.own.0, column)?;
        check_ttl(&self.fields[at], *after_micros)?;
        self.columns.iter_mut().for_each(|column| column.ttl = None);
        self.columns[at].ttl = Some(*after_micros);
        Ok(())
    }

    pub fn drop_ttl(&mut self) -> Result<()> {
        match self.columns.iter_mut().find(|column| column.ttl.is_some()) {
            Some(column) => column.ttl = None,
            None => return Err(Error::not_found("its rows do not expire")),
        }
        Ok(())
    }

    /// Whether rows expire in another way than before.
    pub fn changes_ttl(&self) -> bool {
        let own = self.own.known_columns().into_iter().flatten().find_map(|column| Some((&column.id, column.ttl?)));
        own != self.columns.iter().find_map(|column| Some((&column.id, column.ttl?)))
    }

    fn is_of_key(&self, at: usize) -> bool {
        self.table.spec.keyed && self.table.order().contains(self.own.0.field(at).name())
    }

    /// Gives a column another type.
    fn retype(&mut self, at: usize, data_type: &DataType) -> Result<()> {
        let came = self.fields[at].data_type().clone();
        let field = self.fields[at].as_ref().clone().with_data_type(data_type.clone());
        self.fields[at] = self.table.as_kept(&field);
        let field = self.fields[at].clone();
        let into = |value: &ArrayRef| conform_value(value, &field).map_err(|e| e.context("the default"));
        self.columns[at] = self.columns[at].clone().widened(&came, into)?;
        self.columns[at].ttl.map_or(Ok(()), |after| check_ttl(&self.fields[at], after))?;
        self.columns[at].generator.as_ref().map_or(Ok(()), |generator| generator.check(&self.fields[at]))
    }

    /// Says no more of the values of columns than their types do.
    pub fn forget(&mut self, columns: BTreeSet<usize>) {
        for at in columns {
            self.fields[at] = Arc::new(forgotten(&self.fields[at]));
            self.forgotten.insert(self.fields[at].name().clone());
        }
    }

    /// Brings in the types and columns of a frame.
    pub fn take_in(&mut self, came: &Schema, mode: SchemaMode) -> Result<()> {
        for at in 0..self.fields.len() {
            let field = self.fields[at].clone();
            let Ok(other) = came.field_with_name(field.name()) else { continue };
            let untyped = *field.data_type() == DataType::Null && *other.data_type() != DataType::Null;
            if mode == SchemaMode::Strict && !untyped || self.table.order().contains(field.name()) {
                continue;
            }
            if untyped {
                let metadata = other.metadata().clone();
                self.fields[at] = Arc::new(field.as_ref().clone().with_metadata(metadata));
                self.retype(at, other.data_type())?;
                continue;
            }
            let Some(wider) = common_type::field(&field, other) else { continue };
            // Types that hold the values only for the most part, such as finer times, are for `widen`.
            if wider.data_type() != field.data_type() && widens(field.data_type(), wider.data_type()) {
                self.retype(at, wider.data_type())?;
            }
        }
        if mode == SchemaMode::Evolve {
            let lacks = |field: &&FieldRef| self.own.0.index_of(field.name()).is_err();
            let nullable = |field: &FieldRef| field.as_ref().clone().with_nullable(true);
            let new = came.fields().iter().filter(lacks).map(nullable);
            let new: Vec<NewColumn> = new.map(|field| NewColumn { field, fill: Fill::Null }).collect();
            self.add(&new)?;
        }
        Ok(())
    }

    /// The schema with these columns; `None` if it is the same.
    pub fn schema(self) -> Result<Option<StoredSchema>> {
        let mut metadata = adapted(self.own.0.metadata(), &self.changed);
        if !self.forgotten.is_empty() {
            metadata = unordered(&metadata, &self.forgotten);
        }
        let schema = Arc::new(Schema::new_with_metadata(self.fields, metadata));
        let changed = StoredSchema::with_columns(schema, self.columns, self.checks);
        let changed = changed.with_order(&self.order, &self.table.spec);
        if changed == *self.own {
            return Ok(None);
        }
        let changed = changed.check_new()?;
        changed.bound_checks()?;
        if self.table.spec.keyed {
            // Whether its rows can be held in memory.
            TableCodec::new(&changed.0, &self.order)?.check()?;
        }
        self.table.check_unique_columns(&changed)?;
        Ok(Some(changed))
    }
}

impl TableState {
    /// The ids of all columns that row groups may have.
    fn known_ids(&self) -> BTreeSet<String> {
        let newest = || self.schema().into_iter().flat_map(StoredSchema::ids).map(str::to_owned).collect();
        match planted(Bug::ReuseColumns) {
            true => newest(),
            false => self.schemas.iter().flat_map(StoredSchema::ids).map(str::to_owned).collect(),
        }
    }

    /// A field as a table of this order keeps it.
    fn as_kept(&self, field: &Field) -> FieldRef {
        sorted_schema(&Arc::new(Schema::new(vec![field.clone()])), &self.spec.sort).fields()[0].clone()
    }
}

/// What finds the rows that have null in a column, and what says that there must be none.
pub(in crate::table) fn forbidden_nulls(field: &Field) -> Result<(String, Filter)> {
    let quoted = field.name().replace('"', "\"\"");
    let nulls = Filter::parse(&format!("\"{quoted}\" is null"))?;
    Ok((format!("column '{}' takes no nulls, which", field.name()), nulls))
}
