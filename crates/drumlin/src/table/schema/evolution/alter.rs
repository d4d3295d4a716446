//! What may be changed of the columns of a table.

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Field};

use crate::filter::{Expression, Filter};
use crate::table::schema::constraints::{ConstraintNames, Constraints};
use crate::table::{Assignment, StoredSchema, TimeToLive};

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
    /// Rows expire from then on, those that are there too; in another way than before, if they did. Those that have expired by then are
    /// deleted first, so none comes back.
    SetTtl(TimeToLive),
    /// Rows do not expire any more. Those that have are deleted first.
    DropTtl,
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
    /// Whether rows that have expired must be deleted first.
    pub expires: bool,
    /// Whether rows expire in another way afterwards.
    pub changes_ttl: bool,
}
