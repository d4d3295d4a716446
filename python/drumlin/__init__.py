"""Drumlin: an embedded, versioned table store.

Tables and payloads live on a tree of paths; a commit is atomic over any number of them; every past version of a table
can be read. :mod:`drumlin.tree` has patterns over the tree, and conditions on its nodes.

>>> import drumlin
>>> store = drumlin.open("memory://")
>>> _ = store.write("prices/us/AAPL", {"day": [1, 2], "close": [187.5, 190.0]})
>>> _ = store.append("prices/us/AAPL", {"day": [3], "close": [189.0]})
>>> store.read("prices/us/AAPL", as_of=0).to_arrow().num_rows
2
>>> store.close()
"""

from drumlin import _bars, _html, tree
from drumlin._arguments import AsOf, Progress
from drumlin._constraints import Constraints
from drumlin._dataset import Dataset
from drumlin._diff import Diff
from drumlin._drumlin import (
    Batch,
    Change,
    ChangeFeed,
    Changes,
    CheckpointReport,
    Commit,
    CopyReport,
    CopyToReport,
    DatasetPlan,
    DeleteReport,
    DropReport,
    Event,
    Fault,
    Hold,
    Holding,
    ImportReport,
    ListEntry,
    Loss,
    Mask,
    MergeReport,
    Node,
    NodeChange,
    ProjectionEntry,
    ProjectionView,
    PurgedObject,
    PurgedTable,
    PurgePlan,
    PurgeProof,
    PurgeReceipt,
    ReclaimReport,
    RepackPlan,
    RowsReport,
    SalvageReport,
    Schema,
    Snapshot,
    StagedReport,
    StoreStat,
    TableStat,
    TableVacuumPlan,
    TrashItem,
    TriggerFailure,
    Ui,
    UpdateReport,
    VacuumPlan,
    VacuumWindow,
    VerifyReport,
    Version,
    VersionsReport,
    __version__,
)
from drumlin._errors import (
    Abort,
    AlreadyExists,
    Closed,
    ConditionFailed,
    Conflict,
    Corrupt,
    Error,
    InDoubt,
    Internal,
    InvalidArgument,
    Locked,
    NotFound,
    SchemaMismatch,
    SnapshotExpired,
    Unavailable,
    Unsupported,
)
from drumlin._expr import Expr, col
from drumlin._groups import Groups
from drumlin._input import FrameLike, SchemaLike
from drumlin._lookup import Lookup
from drumlin._merge import Merge
from drumlin._metrics import Durations, Metrics
from drumlin._open import open, salvage
from drumlin._options import Options, options
from drumlin._result import Result, Results
from drumlin._rows import KeysLike, RowsLike
from drumlin._splits import Split, Splits
from drumlin._staged import Ticket, Token
from drumlin._store import Retention, Store
from drumlin._table import Table
from drumlin._transaction import Transaction
from drumlin._tree import Tree
from drumlin.tree import P

__all__ = [
    "Abort",
    "AlreadyExists",
    "AsOf",
    "Batch",
    "Change",
    "ChangeFeed",
    "Changes",
    "CheckpointReport",
    "Closed",
    "Commit",
    "ConditionFailed",
    "Conflict",
    "Constraints",
    "Corrupt",
    "Dataset",
    "Diff",
    "DatasetPlan",
    "DeleteReport",
    "CopyReport",
    "CopyToReport",
    "DropReport",
    "Durations",
    "Error",
    "Event",
    "Expr",
    "Fault",
    "FrameLike",
    "Groups",
    "Hold",
    "Holding",
    "ImportReport",
    "InDoubt",
    "Internal",
    "InvalidArgument",
    "KeysLike",
    "ListEntry",
    "Locked",
    "Lookup",
    "Loss",
    "Merge",
    "MergeReport",
    "Mask",
    "Metrics",
    "Node",
    "NodeChange",
    "NotFound",
    "Options",
    "P",
    "Progress",
    "ProjectionEntry",
    "ProjectionView",
    "PurgePlan",
    "PurgeProof",
    "PurgeReceipt",
    "PurgedObject",
    "PurgedTable",
    "ReclaimReport",
    "RepackPlan",
    "Result",
    "Results",
    "Retention",
    "RowsLike",
    "RowsReport",
    "SalvageReport",
    "Schema",
    "SchemaLike",
    "SchemaMismatch",
    "Snapshot",
    "SnapshotExpired",
    "Split",
    "Splits",
    "StagedReport",
    "Store",
    "StoreStat",
    "Table",
    "TableStat",
    "TableVacuumPlan",
    "Ticket",
    "Token",
    "Transaction",
    "TrashItem",
    "Tree",
    "TriggerFailure",
    "Ui",
    "UpdateReport",
    "Unavailable",
    "Unsupported",
    "VacuumPlan",
    "VacuumWindow",
    "VerifyReport",
    "Version",
    "VersionsReport",
    "__version__",
    "col",
    "open",
    "options",
    "salvage",
    "tree",
]

_bars.install()
_html.install()
