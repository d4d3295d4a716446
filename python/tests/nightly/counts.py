"""The figures of a night, and the pairs of operations that it reached: in files of which docs/faults.md is made."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from .parts import ROOT

#: See crates/drumlin/tests/tidy/pairs.rs, which reads them.
FOLDER = ROOT / "crates/drumlin/tests/nightly"
HEADER = """\
# Pairs of operations that a night's run of tests/it/models/swarm.rs reached, by `make nightly`: an operation, the one
# after it on the same table, how often that was done and refused; the kind of the table (plain, sorted, keyed), where
# its rows lay (memory, row groups, patches, inline, copied), the storage (folder, shared, bucket); and how many
# operations were done after both.
"""


def pairs(folder: Path) -> str:
    """The sum of what processes have counted."""
    counts: dict[tuple[str, ...], list[int]] = {}
    thirds: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for file in sorted(folder.glob("*.txt")):
        for line in file.read_text().splitlines():
            verbs, *words = line.split()
            names, numbers = tuple(verbs.split(">")), [int(word) for word in words]
            if len(names) == 2:
                before = counts.get(names, [0] * len(numbers))
                counts[names] = [a + b for a, b in zip(before, numbers, strict=True)]
            elif numbers[0] > 0:
                thirds[names[:2]].add(names[2])
    lines = [
        f"{' '.join(names)} {' '.join(map(str, numbers))} {len(thirds[names])}"
        for names, numbers in sorted(counts.items())
    ]
    return HEADER + "".join(line + "\n" for line in lines)


def keep(pairs_folder: Path, figures: list[tuple[str, str]]) -> None:
    """Writes both files."""
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / "pairs.txt").write_text(pairs(pairs_folder))
    (FOLDER / "figures.txt").write_text("".join(f"{what}: {much}\n" for what, much in figures))
