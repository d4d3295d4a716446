"""What a checkpoint would do, and what a read costs."""

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
    """The blocks whose row groups a checkpoint would copy to other blocks, byte for byte."""

    @property
    def blocks_before(self) -> int:
        """Blocks before the checkpoint."""
    @property
    def blocks(self) -> int:
        """Blocks to empty: mostly dead ones, or many small ones."""
    @property
    def bytes_moved(self) -> int:
        """Bytes to copy."""
    @property
    def bytes_gained(self) -> int:
        """Bytes that would be freed."""
    @property
    def left_out(self) -> int:
        """Blocks worth emptying that exceed the budget."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class VacuumWindow:
    """Adjacent row groups to rewrite together."""

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
        """Rows to keep."""
    @property
    def dead_rows(self) -> int:
        """Rows to remove."""
    @property
    def bytes_rewritten(self) -> int:
        """Bytes expected to be written."""
    @property
    def bytes_gained(self) -> int:
        """Bytes expected to be freed."""
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
        """The row groups to rewrite, in table order."""
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
        """Rows that no retained version shows, before the checkpoint."""
    @property
    def left_out(self) -> int:
        """Windows that exceed the budget."""
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
        """What it would copy out of blocks that are mostly dead, or small."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class DatasetPlan:
    """What reading a data set costs, and what its filter saves. `print` it."""

    @property
    def tables(self) -> list[str]:
        """The paths of the tables that are opened."""
    @property
    def pruned_tables(self) -> list[str]:
        """The paths of the tables that are not opened."""
    @property
    def row_groups(self) -> int:
        """Row groups with visible rows in the tables that are opened."""
    @property
    def pruned_row_groups(self) -> int:
        """Row groups of these tables that are not read, because statistics show that no row matches the filter."""
    @property
    def whole_row_groups(self) -> int:
        """Row groups of these tables whose rows all match the filter, as their statistics show."""
    @property
    def bytes(self) -> int:
        """Encoded bytes to read."""
    @property
    def pruned_bytes(self) -> int:
        """Encoded bytes of the same columns in the row groups that are not read."""
    @property
    def memory_rows(self) -> int:
        """Rows in memory to examine."""
    @property
    def indexes(self) -> list[str]:
        """The names of the indexes that were asked. Row groups without a hit in them are not among ``row_groups``."""
    @property
    def indexed_row_groups(self) -> int:
        """Row groups for which indexes were asked, with and without hits."""
    @property
    def index_hits(self) -> int:
        """Rows that the indexes gave, deleted ones too."""
    @property
    def index_bytes(self) -> int:
        """Encoded bytes of the indexes' pages that were read for that."""
