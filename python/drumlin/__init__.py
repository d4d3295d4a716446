"""Drumlin: an embedded, versioned table store.

Tables live on a tree of paths; a commit is atomic over any number of tables; every past version can be read.

>>> import drumlin
>>> store = drumlin.open("memory://")
>>> _ = store.write("prices/us/AAPL", {"day": [1, 2], "close": [187.5, 190.0]})
>>> _ = store.append("prices/us/AAPL", {"day": [3], "close": [189.0]})
>>> store.read("prices/us/AAPL", as_of=0).to_arrow().num_rows
2
>>> store.close()
"""

from drumlin._drumlin import (
    Batch,
    CheckpointReport,
    DeleteReport,
    DropReport,
    Fault,
    Holding,
    Node,
    ReclaimReport,
    Schema,
    Snapshot,
    StoreStat,
    TableStat,
    TrashItem,
    VacuumPlan,
    VacuumWindow,
    VerifyReport,
    Version,
    __version__,
)
from drumlin._errors import (
    AlreadyExists,
    Closed,
    Conflict,
    Corrupt,
    Error,
    InDoubt,
    InvalidArgument,
    Locked,
    NotFound,
    SchemaMismatch,
    SnapshotExpired,
    Unavailable,
    Unsupported,
)
from drumlin._expr import Expr, col
from drumlin._input import FrameLike, SchemaLike
from drumlin._result import Result
from drumlin._store import AsOf, Progress, Retention, Store, Table, open

__all__ = [
    "AlreadyExists",
    "AsOf",
    "Batch",
    "CheckpointReport",
    "Closed",
    "Conflict",
    "Corrupt",
    "DeleteReport",
    "DropReport",
    "Error",
    "Expr",
    "Fault",
    "FrameLike",
    "Holding",
    "InDoubt",
    "InvalidArgument",
    "Locked",
    "Node",
    "NotFound",
    "Progress",
    "ReclaimReport",
    "Result",
    "Retention",
    "Schema",
    "SchemaLike",
    "SchemaMismatch",
    "Snapshot",
    "SnapshotExpired",
    "Store",
    "StoreStat",
    "Table",
    "TableStat",
    "TrashItem",
    "Unavailable",
    "Unsupported",
    "VacuumPlan",
    "VacuumWindow",
    "VerifyReport",
    "Version",
    "__version__",
    "col",
    "open",
]
