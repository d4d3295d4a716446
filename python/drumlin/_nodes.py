"""Nodes, what happened to them, and what is derived from them, as the core gives it."""

from drumlin._drumlin import (
    Change,
    ChangeFeed,
    Changes,
    Commit,
    Condition,
    Event,
    ImportReport,
    ListEntry,
    Node,
    NodeChange,
    NodeChanges,
    Pattern,
    ProjectionEntry,
    ProjectionView,
    TriggerFailure,
    Walk,
)

__all__ = [
    "Change",
    "ChangeFeed",
    "Changes",
    "Commit",
    "Condition",
    "Event",
    "ImportReport",
    "ListEntry",
    "Node",
    "NodeChange",
    "NodeChanges",
    "Pattern",
    "ProjectionEntry",
    "ProjectionView",
    "TriggerFailure",
    "Walk",
]
