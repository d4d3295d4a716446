//! What a scan would read, and how many rows it would give, without giving any.

use arrow::datatypes::{DataType, FieldRef};

use super::piece_reader::PieceReader;
use super::pieces::Piece;
use crate::base::{ErrorKind, Result};
use crate::filter::Verdict;
use crate::segment::{PhysicalForm, engine_type};
use crate::table::{IndexCost, Scan};

/// What a scan reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScanPlan {
    /// Row groups with visible rows.
    pub row_groups: u64,
    /// Those among them whose statistics say that no row passes the filter: nothing of them is read.
    pub pruned: u64,
    /// Those whose statistics say that every row passes it: the filter's columns are not read.
    pub whole: u64,
    /// Encoded bytes of the columns read.
    pub bytes: u64,
    /// Encoded bytes of the same columns in the row groups that are pruned.
    pub pruned_bytes: u64,
    /// Rows in memory that are looked at.
    pub memory_rows: u64,
    /// What indexes were asked for, before row groups are looked at: those without hits are not among `row_groups`.
    pub by_index: IndexCost,
}

impl std::ops::AddAssign for ScanPlan {
    fn add_assign(&mut self, other: Self) {
        self.row_groups += other.row_groups;
        self.pruned += other.pruned;
        self.whole += other.whole;
        self.bytes += other.bytes;
        self.pruned_bytes += other.pruned_bytes;
        self.memory_rows += other.memory_rows;
        self.by_index += other.by_index;
    }
}

impl Scan {
    /// What it reads if it is read to its end. Costs the directories of its row groups if there is a filter or bytes are
    /// counted, but no rows.
    ///
    /// # Errors
    /// `Corrupt` or `Unavailable` if a directory cannot be read, `SnapshotExpired` if its version is gone.
    pub fn plan(mut self) -> Result<ScanPlan> {
        let plans = self.of_pieces(|reader, piece| reader.plan(piece))?;
        let begun = ScanPlan { by_index: self.by_index.unwrap_or_default(), ..ScanPlan::default() };
        Ok(plans.into_iter().fold(begun, |mut all, plan| {
            all += plan;
            all
        }))
    }

    /// The number of its rows. Costs no I/O without a filter, if no rows are in memory; else reads the columns of the filter
    /// in row groups whose statistics do not decide it.
    ///
    /// # Errors
    /// As [`Scan::collect`].
    pub fn count(mut self) -> Result<u64> {
        Ok(self.of_pieces(PieceReader::count)?.into_iter().sum())
    }

    /// The types in which engines take its columns, as [`engine_type`] says. Reads directories of row groups.
    ///
    /// # Errors
    /// As [`Scan::plan`].
    pub(crate) fn engine_types(mut self) -> Result<Vec<DataType>> {
        let shared = self.shared.clone();
        let in_memory = shared.overlay.is_some();
        let names: Vec<_> = shared.schema.fields().iter().map(|field| field.name().clone()).collect();
        let kept = self.of_pieces(|reader, piece| {
            let groups = piece.groups.iter().map(|(group, _)| {
                let opened = reader.open(group)?;
                Ok(names.iter().map(|name| opened.column(name).map(|column| column.kept)).collect::<Vec<_>>())
            });
            groups.collect::<Result<Vec<_>>>()
        })?;
        let kept: Vec<Vec<Option<PhysicalForm>>> = kept.into_iter().flatten().collect();
        let narrow = |(at, field): (usize, &FieldRef)| {
            // The extension type in a field's metadata applies only to the field's own storage type.
            if field.extension_type_name().is_some() {
                return field.data_type().clone();
            }
            let of_column = kept.iter().filter_map(|kept| kept[at]);
            engine_type(field.data_type(), in_memory.then_some(PhysicalForm::Values).into_iter().chain(of_column))
        };
        Ok(shared.schema.fields().iter().enumerate().map(narrow).collect())
    }

    /// What `work` gives of each piece, on all threads; again, in a newer state, if blocks are gone.
    fn of_pieces<T: Send>(&mut self, work: impl Fn(&PieceReader, &Piece) -> Result<T> + Send + Sync) -> Result<Vec<T>> {
        loop {
            let (shared, cancel) = (self.shared.clone(), self.cancel());
            let pieces: Vec<Piece> = std::mem::take(&mut self.pieces).into();
            let done = shared.pool.map(pieces, |piece| {
                cancel.check()?;
                work(&shared, &piece)
            });
            match done {
                Err(e) if e.kind() == ErrorKind::SnapshotExpired => self.go_on(e)?,
                done => return done,
            }
        }
    }
}

impl PieceReader {
    fn plan(&self, piece: &Piece) -> Result<ScanPlan> {
        self.named(|| {
            let mut plan = ScanPlan { memory_rows: piece.rows.len() as u64, ..ScanPlan::default() };
            for (group, _) in &piece.groups {
                let reader = self.open(group)?;
                let schema = self.read_as.schema();
                let stats = |index: usize| reader.stats(schema, index);
                let expired = self.expiry.as_ref().map(|expiry| expiry.verdict(&reader));
                let verdict = match (&self.filter, expired) {
                    (_, Some(Verdict::All)) => Verdict::None,
                    (Some(filter), _) => filter.verdict(u64::from(group.rows), &stats),
                    (None, _) => Verdict::All,
                };
                let verdict =
                    if (verdict, expired) == (Verdict::All, Some(Verdict::Some)) { Verdict::Some } else { verdict };
                let mut columns = self.columns.clone();
                if let Some(filter) = self.filter.as_ref().filter(|_| verdict != Verdict::All) {
                    columns.extend(filter.columns());
                    columns.sort_unstable();
                    columns.dedup();
                }
                let bytes = reader.bytes(schema, columns);
                plan.row_groups += 1;
                match verdict {
                    Verdict::None => (plan.pruned, plan.pruned_bytes) = (plan.pruned + 1, plan.pruned_bytes + bytes),
                    Verdict::All => (plan.whole, plan.bytes) = (plan.whole + 1, plan.bytes + bytes),
                    Verdict::Some => plan.bytes += bytes,
                }
            }
            Ok(plan)
        })
    }
}
