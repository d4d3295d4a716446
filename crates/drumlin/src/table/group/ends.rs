//! The least and the greatest sort key of a row group: what statistics of single columns do not tell, where row groups touch.

use arrow::array::{ArrayRef, UInt64Array};
use arrow::row::{RowConverter, SortField};

use crate::base::Result;
use crate::segment::{join, take_rows};

/// The sort columns of two rows of a row group: the first and the last in the sort order, whatever versions see them.
#[derive(Clone, Debug)]
pub struct Ends {
    columns: Vec<ArrayRef>,
}

impl Ends {
    /// Those whose sort columns have these rows at `least` and `greatest`.
    pub(in crate::table) fn at(columns: &[ArrayRef], least: u64, greatest: u64) -> Result<Self> {
        let places = UInt64Array::from(vec![least, greatest]);
        Ok(Self { columns: columns.iter().map(|column| take_rows(column, &places)).collect::<Result<_>>()? })
    }

    /// The sort columns, of two rows each.
    pub(in crate::table) fn columns(&self) -> &[ArrayRef] {
        &self.columns
    }
}

/// The bounds of many row groups as bytes that compare as the rows do: the least and the greatest of each.
pub(in crate::table) fn comparable_ends(ends: &[Ends]) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let Some(first) = ends.first() else { return Ok(Vec::new()) };
    let column = |at: usize| join(&ends.iter().map(|ends| ends.columns[at].clone()).collect::<Vec<_>>());
    let columns: Vec<ArrayRef> = (0..first.columns.len()).map(column).collect::<Result<_>>()?;
    let fields = columns.iter().map(|column| SortField::new(column.data_type().clone())).collect();
    let keys = RowConverter::new(fields)?.convert_columns(&columns)?;
    let bytes = |at: usize| keys.row(at).as_ref().to_vec();
    Ok((0..ends.len()).map(|at| (bytes(2 * at), bytes(2 * at + 1))).collect())
}
