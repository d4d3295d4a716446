"""What calls that change rows answer, as the core gives it."""

from drumlin._drumlin import DeleteReport, MergeReport, RowsReport, UpdateReport

__all__ = [
    "DeleteReport",
    "MergeReport",
    "RowsReport",
    "UpdateReport",
]
