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

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};

use super::arrays::find;
use super::claims::{claimed, forgotten, lost};
use super::column::Column;
use super::common_type;
use super::common_type::widens;
use super::compression::{compressed_as, compression_of};
use super::conform::{conform_value, first_misfit, may_be_exact};
use super::constraints::{Check, ConstraintNames, Constraints};
use super::frame_metadata::{Changed, adapted, unordered};
use crate::base::planted::{Bug, planted};
use crate::base::{Cancel, Error, Pool, Result, TypeName};
use crate::block::BlockReader;
use crate::filter::{Expression, Filter};
use crate::segment::Form;
use crate::table::read::group_reader::GroupReader;
use crate::table::{Assignment, Rows, StoredSchema, TableCodec, TableState, sorted_schema};

/// Which columns a frame may have that is brought into a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SchemaMode {
    /// Those of the table, in types of which every value fits. A column that has been of type null so far takes any type.
    #[default]
    Strict,
    /// Others too: the table gets those that it lacks, and wider types; those that the frame lacks are their default, or null.
    Evolve,
}

/// A column to be added to a table.
#[derive(Clone, Debug)]
pub struct NewColumn {
    /// Its name, type and metadata.
    pub field: Field,
    /// What the rows have that are there.
    pub fill: Fill,
}

/// What rows have in a column that is new.
#[derive(Clone, Debug, Default)]
pub enum Fill {
    /// Null.
    #[default]
    Null,
    /// A value, which rows of later frames that lack the column have too: an array of one row.
    Default(ArrayRef),
    /// What is computed from the columns that were there. Later rows have what they bring, or null.
    Computed(Expression),
}

/// A change of columns.
#[derive(Clone, Debug)]
pub enum Alter {
    /// New ones, after those that are there.
    Add(Vec<NewColumn>),
    /// Those of these names go.
    Drop(Vec<String>),
    /// From a name to another, all at once: names can be swapped. Columns of the key, and those that the table is sorted by, too.
    Rename(Vec<(String, String)>),
    /// To types that hold all of their values.
    Widen(Vec<(String, DataType)>),
    /// Constraints come; a default takes the place of that of the same column. Rows that are there must keep them. From then on no
    /// write brings in a row that does not, by whatever call; `write` keeps them, defaults for the columns that its frame has.
    AddConstraints(Constraints),
    /// Constraints go.
    DropConstraints(ConstraintNames),
}

impl Alter {
    /// The new columns that get computed values.
    pub fn computed(&self) -> Vec<Assignment> {
        let Alter::Add(columns) = self else { return Vec::new() };
        let computed = |NewColumn { field, fill }: &NewColumn| match fill {
            Fill::Computed(expression) => Some((field.name().clone(), expression.clone())),
            _ => None,
        };
        columns.iter().filter_map(computed).collect()
    }
}

/// What a change of columns comes to.
#[derive(Clone, Debug)]
pub struct Altered {
    /// The new schema.
    pub schema: StoredSchema,
    /// Columns whose values have to be looked at first, with their new types: see [`check_widening`].
    pub doubtful: Vec<(String, DataType)>,
    /// What no row may be that is there, and what says so.
    pub forbidden: Vec<(String, Filter)>,
}

/// The columns of a table, while they are changed.
struct Columns<'a> {
    table: &'a TableState,
    own: &'a StoredSchema,
    fields: Vec<FieldRef>,
    columns: Vec<Column>,
    checks: Vec<Check>,
    /// The columns that the table is ordered by.
    order: Vec<String>,
    /// Names that changed, as metadata of the schema have them.
    changed: Changed,
    /// Columns of whose values nothing is said any more.
    forgotten: BTreeSet<String>,
    doubtful: Vec<(String, DataType)>,
    forbidden: Vec<(String, Filter)>,
}

impl<'a> Columns<'a> {
    fn of(table: &'a TableState) -> Result<Self> {
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

    fn add(&mut self, added: &[NewColumn]) -> Result<()> {
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

    fn drop(&mut self, names: &[String]) -> Result<()> {
        let gone = names.iter().map(|name| self.place(name, "dropped")).collect::<Result<BTreeSet<_>>>()?;
        if gone.len() == self.fields.len() {
            return Err(Error::invalid("a table needs at least one column; drop the table instead"));
        }
        for at in gone.into_iter().rev() {
            self.check_free(at, "dropped")?;
            self.changed.insert(self.fields[at].name().clone(), None);
            self.fields.remove(at);
            self.columns.remove(at);
        }
        Ok(())
    }

    fn rename(&mut self, names: &[(String, String)]) -> Result<()> {
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

    fn widen(&mut self, types: &[(String, DataType)]) -> Result<()> {
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

    fn constrain(&mut self, Constraints { checks, not_null, defaults, generators }: &Constraints) -> Result<()> {
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

    fn release(&mut self, ConstraintNames { checks, not_null, defaults }: &ConstraintNames) -> Result<()> {
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
        self.columns[at].generator.as_ref().map_or(Ok(()), |generator| generator.check(&self.fields[at]))
    }

    /// Says no more of the values of columns than their types do.
    fn forget(&mut self, columns: BTreeSet<usize>) {
        for at in columns {
            self.fields[at] = Arc::new(forgotten(&self.fields[at]));
            self.forgotten.insert(self.fields[at].name().clone());
        }
    }

    /// Brings in the types and columns of a frame.
    fn take_in(&mut self, came: &Schema, mode: SchemaMode) -> Result<()> {
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
    fn schema(self) -> Result<Option<StoredSchema>> {
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
        }
        let (doubtful, forbidden) = (std::mem::take(&mut columns.doubtful), std::mem::take(&mut columns.forbidden));
        Ok(columns.schema()?.map(|schema| Altered { schema, doubtful, forbidden }))
    }

    /// The schema of a frame that replaces all rows, with the constraints and the compression of this table, in its order, and the values with which
    /// columns were added that are the same in it. `SchemaMismatch` if the frame lacks a column of a check, `InvalidArgument` of a unique index.
    pub fn constrained(&self, came: StoredSchema) -> Result<StoredSchema> {
        let own = self.schema().map(|own| compression_of(&own.0)).transpose()?.flatten();
        let compressed = own.map(|own| compressed_as(&came.0, None, Some(own)).metadata().clone());
        let came = compressed.map_or(came.clone(), |metadata| came.with_metadata(metadata));
        let came = self.with_own_fills(came);
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
            *column = column.clone().constrained_as(&before[at], default.transpose()?.as_ref())?;
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
fn forbidden_nulls(field: &Field) -> Result<(String, Filter)> {
    let quoted = field.name().replace('"', "\"\"");
    let nulls = Filter::parse(&format!("\"{quoted}\" is null"))?;
    Ok((format!("column '{}' takes no nulls, which", field.name()), nulls))
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
