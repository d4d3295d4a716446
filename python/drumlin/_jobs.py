"""Parts of data sets, and rows staged for a job, as the core gives them."""

from drumlin._drumlin import (
    Lease,
    Split,
    SplitReader,
    Stage,
    Ticket,
    Token,
    abort_staged,
    commit_staged,
    stage_alone,
)

__all__ = [
    "Lease",
    "Split",
    "SplitReader",
    "Stage",
    "Ticket",
    "Token",
    "abort_staged",
    "commit_staged",
    "stage_alone",
]
