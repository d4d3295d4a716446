"""Freed space: a reclaim leaves no object that nothing refers to, and none with data once everything is dropped."""

from __future__ import annotations

from collections.abc import Iterator

import drumlin

from .places import NOW, Place


def reclaimed(store: drumlin.Store) -> Iterator[str]:
    """Removes what dead processes have left; returns what was not removed."""
    report = store.reclaim(block_grace=NOW, fence_idle=NOW, audit=True)
    if report.failures:
        yield f"a reclaim failed: {report.failures[:3]}"
    verified = store.verify()
    if verified.orphans or verified.faults:
        yield f"after a reclaim there are orphans {verified.orphans[:3]}, faults {verified.faults[:3]}"
    again = store.reclaim(block_grace=NOW, audit=True)
    if again.orphans:
        yield f"a second reclaim found {again.orphans} orphans"


def emptied(store: drumlin.Store, place: Place) -> Iterator[str]:
    """Drops and reclaims everything; returns what is left."""
    for snapshot in store.snapshots():
        store.drop_snapshot(snapshot.name)
    if store.tables():
        store.drop("**")
    for _ in range(2):
        store.reclaim(block_grace=NOW, fence_idle=NOW, audit=True)
        store.checkpoint()
    stat = store.stat()
    if stat.blocks or stat.condemned:
        yield f"everything was dropped and there are {stat.blocks} blocks, {stat.condemned} condemned"
    left = [name for name in place.objects() if name.startswith("blocks/") or name.endswith(".tmp")]
    if left:
        yield f"everything was dropped and there are {left[:5]} ({len(left)} in all)"
