//! What a checkpoint would do.

use drumlin::{Plan, Window};
use pyo3::prelude::*;

use crate::reports::{describe, record};

record! {
    /// The blocks whose row groups a checkpoint would copy to other blocks, byte for byte.
    RepackPlan {
        /// Blocks before the checkpoint.
        blocks_before: u64,
        /// Blocks to empty: mostly dead ones, or many small ones.
        blocks: u64,
        /// Bytes to copy.
        bytes_moved: u64,
        /// Bytes that would be freed.
        bytes_gained: u64,
        /// Blocks worth emptying that exceed the budget.
        left_out: u64,
    } as text {
        fn __str__(&self) -> &str {
            &self.text
        }
    }
}

impl From<drumlin::RepackPlan> for RepackPlan {
    fn from(plan: drumlin::RepackPlan) -> Self {
        Self {
            text: plan.to_string(),
            blocks_before: plan.blocks_before,
            blocks: plan.blocks.len() as u64,
            bytes_moved: plan.bytes_moved,
            bytes_gained: plan.bytes_gained,
            left_out: plan.left_out,
        }
    }
}

record! {
    /// Adjacent row groups to rewrite together.
    VacuumWindow {
        /// Why: `fold` (deleted rows), `lone` (one row group that is mostly deleted) or `merge` (small row groups).
        reason: String,
        /// Row groups before.
        inputs: u64,
        /// Row groups after.
        outputs: u64,
        /// Rows to keep.
        rows: u64,
        /// Rows to remove.
        dead_rows: u64,
        /// Bytes expected to be written.
        bytes_rewritten: u64,
        /// Bytes expected to be freed.
        bytes_gained: u64,
    } {}
}

impl From<&Window> for VacuumWindow {
    fn from(window: &Window) -> Self {
        Self {
            reason: format!("{:?}", window.reason).to_lowercase(),
            inputs: window.inputs.len() as u64,
            outputs: window.outputs.into(),
            rows: window.rows,
            dead_rows: window.dead_rows,
            bytes_rewritten: window.bytes_rewritten(),
            bytes_gained: window.bytes_gained(),
        }
    }
}

record! {
    /// What a checkpoint would rewrite in one table, and why. `print` it.
    TableVacuumPlan {
        /// The table's path.
        path: String,
        /// The row groups to rewrite, in table order.
        windows: Vec<VacuumWindow>,
        /// Row groups before.
        row_groups_before: u64,
        /// Row groups after.
        row_groups_after: u64,
        /// Encoded bytes before.
        bytes_before: u64,
        /// Rows that no retained version shows, before the checkpoint.
        dead_rows: u64,
        /// Windows that exceed the budget.
        left_out: u64,
    } as text {
        fn __str__(&self) -> String {
            format!("{}: {}", self.path, self.text.trim_end())
        }
    }
}

impl From<(String, Plan)> for TableVacuumPlan {
    fn from((path, plan): (String, Plan)) -> Self {
        Self {
            path,
            windows: plan.windows.iter().map(VacuumWindow::from).collect(),
            row_groups_before: plan.groups_before,
            row_groups_after: plan.groups_after(),
            bytes_before: plan.bytes_before,
            dead_rows: plan.dead_before,
            left_out: plan.left_out,
            text: plan.to_string(),
        }
    }
}

record! {
    /// What a checkpoint would rewrite and move. `print` it.
    VacuumPlan {
        /// What it would rewrite, table by table.
        tables: Vec<TableVacuumPlan>,
        /// What it would copy out of blocks that are mostly dead, or small.
        blocks: RepackPlan,
    } {
        fn __str__(&self) -> String {
            let tables = self.tables.iter().map(TableVacuumPlan::__str__);
            tables.chain([self.blocks.text.clone()]).collect::<Vec<_>>().join("\n")
        }
    }
}

impl From<drumlin::VacuumPlan> for VacuumPlan {
    fn from(plan: drumlin::VacuumPlan) -> Self {
        Self { tables: plan.tables.into_iter().map(TableVacuumPlan::from).collect(), blocks: plan.blocks.into() }
    }
}
