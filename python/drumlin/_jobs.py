"""Data sets and their parts, and rows staged for a job, as the core gives them."""

from drumlin._drumlin import (
    Dataset,
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
    "Dataset",
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
