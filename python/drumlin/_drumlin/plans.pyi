"""What a checkpoint would do, and what reading costs."""

from typing import ClassVar, final

__all__ = [
    "DatasetPlan",
    "RepackPlan",
    "TableVacuumPlan",
    "VacuumPlan",
    "VacuumWindow",
]

@final
class RepackPlan:
    """The blocks that a checkpoint would empty into others, byte for byte."""

    @property
    def blocks_before(self) -> int:
        """Blocks before."""
    @property
    def blocks(self) -> int:
        """Blocks to be emptied: mostly dead, or small and many."""
    @property
    def bytes_moved(self) -> int:
        """Bytes to be copied."""
    @property
    def bytes_gained(self) -> int:
        """Bytes to be gained."""
    @property
    def left_out(self) -> int:
        """Blocks that would be worth it, beyond the budget."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class VacuumWindow:
    """Adjacent row groups to be rewritten together."""

    @property
    def reason(self) -> str:
        """Why: `fold` (deleted rows), `lone` (one row group that is mostly deleted) or `merge` (small row groups)."""
    @property
    def inputs(self) -> int:
        """Row groups before."""
    @property
    def outputs(self) -> int:
        """Row groups after."""
    @property
    def rows(self) -> int:
        """Rows that stay."""
    @property
    def dead_rows(self) -> int:
        """Rows that go."""
    @property
    def bytes_rewritten(self) -> int:
        """Bytes expected to be written."""
    @property
    def bytes_gained(self) -> int:
        """Bytes expected to be gained."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class TableVacuumPlan:
    """What a checkpoint would rewrite in one table, and why. `print` it."""

    @property
    def path(self) -> str:
        """The table's path."""
    @property
    def windows(self) -> list[VacuumWindow]:
        """What would be rewritten, in table order."""
    @property
    def row_groups_before(self) -> int:
        """Row groups before."""
    @property
    def row_groups_after(self) -> int:
        """Row groups after."""
    @property
    def bytes_before(self) -> int:
        """Encoded bytes before."""
    @property
    def dead_rows(self) -> int:
        """Rows that no retained version sees, before."""
    @property
    def left_out(self) -> int:
        """Windows that the budget left out."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class VacuumPlan:
    """What a checkpoint would rewrite and move. `print` it."""

    @property
    def tables(self) -> list[TableVacuumPlan]:
        """What it would rewrite, table by table."""
    @property
    def blocks(self) -> RepackPlan:
        """What it would copy from blocks that are mostly dead, or small."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class DatasetPlan:
    """What reading a data set costs, and what its filter spares. Its text is for people."""

    @property
    def tables(self) -> list[str]:
        """The paths of the tables that are opened."""
    @property
    def pruned_tables(self) -> list[str]:
        """The paths of those that are not."""
    @property
    def row_groups(self) -> int:
        """Row groups with visible rows in the tables that are opened."""
    @property
    def pruned_row_groups(self) -> int:
        """Those among them of which nothing is read: their statistics rule the filter out."""
    @property
    def whole_row_groups(self) -> int:
        """Those among them whose rows the filter all keeps, as statistics say."""
    @property
    def bytes(self) -> int:
        """Encoded bytes that are read."""
    @property
    def pruned_bytes(self) -> int:
        """Encoded bytes of the same columns in row groups that are pruned."""
    @property
    def memory_rows(self) -> int:
        """Rows in memory that are looked at."""
