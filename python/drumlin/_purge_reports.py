"""What a purge would do and did, as the core gives it."""

from drumlin._drumlin import PurgedObject, PurgedTable, PurgePlan, PurgeProof, PurgeReceipt

__all__ = [
    "PurgePlan",
    "PurgeProof",
    "PurgeReceipt",
    "PurgedObject",
    "PurgedTable",
]
