"""Drumlin: an embedded, versioned table store.

Tables and payloads are kept in a tree of paths. A commit is atomic over any number of them, and every past version of a
table can be read. :mod:`drumlin.tree` has patterns over the tree, and conditions on its nodes.

>>> import drumlin
>>> store = drumlin.open("memory://")
>>> _ = store.write("prices/us/AAPL", {"day": [1, 2], "close": [187.5, 190.0]})
>>> _ = store.append("prices/us/AAPL", {"day": [3], "close": [189.0]})
>>> store.read("prices/us/AAPL", as_of=0).to_arrow().num_rows
2
>>> store.close()
"""

from typing import TYPE_CHECKING, Any

from drumlin import tree
from drumlin._arguments.checks import AsOf, Progress
from drumlin._arguments.constraints import Constraints, TimeToLive
from drumlin._arguments.expr import Expr, col
from drumlin._arguments.frames import FrameLike, SchemaLike
from drumlin._arguments.generated import Generated, now, sequence, uuid
from drumlin._arguments.rows import KeysLike, RowsLike
from drumlin._display import bars as _bars
from drumlin._display import html as _html
from drumlin._display.options import Options, options
from drumlin._drumlin import (
    Batch,
    Change,
    ChangeFeed,
    Changes,
    CheckpointReport,
    CloneReport,
    Commit,
    CopyReport,
    CopyToReport,
    DatasetPlan,
    DeleteReport,
    DropReport,
    Event,
    Fault,
    Follower,
    Hold,
    Holding,
    ImportReport,
    Index,
    Layout,
    ListEntry,
    Loss,
    Mask,
    MergeReport,
    Node,
    NodeChange,
    PresenceInfo,
    ProjectionEntry,
    ProjectionView,
    PromoteReport,
    PurgedObject,
    PurgedTable,
    PurgePlan,
    PurgeProof,
    PurgeReceipt,
    ReclaimReport,
    RepackPlan,
    ReplicateReport,
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
    View,
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
from drumlin._habits import missing
from drumlin._nouns.dataset import Dataset
from drumlin._nouns.merge import Merge
from drumlin._nouns.open import move_log, open, salvage, share, unshare
from drumlin._nouns.replica import clone, follow, promote
from drumlin._nouns.sink import Sink
from drumlin._nouns.store import Retention, Store
from drumlin._nouns.table import Table
from drumlin._nouns.transaction import Transaction
from drumlin._nouns.tree import Tree
from drumlin._processes.presence import Presence
from drumlin._processes.splits import Split, Splits
from drumlin._processes.staged import Ticket, Token
from drumlin._results.changes import RowChanges, RowFeed
from drumlin._results.diff import Diff
from drumlin._results.joined import Joined, Windows
from drumlin._results.lookup import Lookup
from drumlin._results.metrics import Durations, Metrics
from drumlin._results.result import Groups, Result, Results
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
    "CopyReport",
    "CopyToReport",
    "Corrupt",
    "Dataset",
    "DatasetPlan",
    "DeleteReport",
    "Diff",
    "DropReport",
    "Durations",
    "Error",
    "Event",
    "Expr",
    "Fault",
    "FrameLike",
    "Generated",
    "Groups",
    "Joined",
    "Hold",
    "Holding",
    "ImportReport",
    "Follower",
    "Index",
    "Layout",
    "InDoubt",
    "Internal",
    "InvalidArgument",
    "KeysLike",
    "ListEntry",
    "Locked",
    "Lookup",
    "Loss",
    "Mask",
    "Merge",
    "MergeReport",
    "Metrics",
    "Node",
    "NodeChange",
    "Presence",
    "PresenceInfo",
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
    "RowChanges",
    "RowFeed",
    "RowsLike",
    "RowsReport",
    "CloneReport",
    "PromoteReport",
    "ReplicateReport",
    "SalvageReport",
    "Schema",
    "Sink",
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
    "TimeToLive",
    "Token",
    "Transaction",
    "TrashItem",
    "Tree",
    "TriggerFailure",
    "Ui",
    "Unavailable",
    "Unsupported",
    "UpdateReport",
    "VacuumPlan",
    "VacuumWindow",
    "VerifyReport",
    "Version",
    "VersionsReport",
    "View",
    "Windows",
    "__version__",
    "col",
    "move_log",
    "now",
    "open",
    "options",
    "clone",
    "follow",
    "promote",
    "salvage",
    "sequence",
    "share",
    "tree",
    "unshare",
    "uuid",
]


# Not for type checkers, for which any name would then be there.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name in ("aio", "daft", "dask", "migrate", "ray", "spark"):
            import importlib

            return importlib.import_module(f"drumlin.{name}")
        raise missing(["drumlin"], name, __all__)


_bars.install()
_html.install()
