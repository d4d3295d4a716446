"""The drawings of the site, as SVG that stands in the page itself: its colours are those of the page, light or dark.

A drawing is a function that returns a `Drawing`'s text; `DRAWINGS` has them by name. Colours are classes of `site.css`.
"""

from collections.abc import Callable
from html import escape
from itertools import pairwise

#: Width of all drawings, in units of about a pixel.
WIDTH = 720


class Drawing:
    """Shapes, from the top down."""

    def __init__(self, height: int, title: str) -> None:
        self.height, self.title = height, title
        self.shapes: list[str] = []

    def box(self, x: float, y: float, width: float, height: float, kind: str = "box", round_: int = 4) -> None:
        """A rectangle; `kind` is its class."""
        self.shapes.append(f'<rect class="d-{kind}" x="{x}" y="{y}" width="{width}" height="{height}" rx="{round_}"/>')

    def text(self, x: float, y: float, text: str, kind: str = "text", anchor: str = "start") -> None:
        """A line of text with its baseline at `y`."""
        self.shapes.append(f'<text class="d-{kind}" x="{x}" y="{y}" text-anchor="{anchor}">{escape(text)}</text>')

    def line(self, x1: float, y1: float, x2: float, y2: float, kind: str = "line", arrow: bool = False) -> None:
        """A line, with a head at its end if `arrow`."""
        self.shapes.append(f'<path class="d-{kind}" d="M{x1} {y1}L{x2} {y2}"/>')
        if arrow:
            self._head(x2, y2, x2 - x1, y2 - y1)

    def path(self, points: list[tuple[float, float]], kind: str = "line", arrow: bool = False) -> None:
        """Lines from point to point."""
        for at, (start, end) in enumerate(pairwise(points)):
            self.line(*start, *end, kind=kind, arrow=arrow and at == len(points) - 2)

    def labelled(self, x: float, y: float, width: float, height: float, lines: list[str], kind: str = "box") -> None:
        """A rectangle with lines of text in its middle."""
        self.box(x, y, width, height, kind)
        first = y + height / 2 - 8 * (len(lines) - 1) + 4
        for at, line in enumerate(lines):
            self.text(x + width / 2, first + 16 * at, line, "text" if at == 0 else "note", "middle")

    def _head(self, x: float, y: float, dx: float, dy: float) -> None:
        length = (dx * dx + dy * dy) ** 0.5
        ux, uy = dx / length * 7, dy / length * 7
        left, right = (x - ux - uy / 2, y - uy + ux / 2), (x - ux + uy / 2, y - uy - ux / 2)
        points = " ".join(f"{px:.1f},{py:.1f}" for px, py in ((x, y), left, right))
        self.shapes.append(f'<polygon class="d-head" points="{points}"/>')

    def svg(self) -> str:
        """The drawing."""
        head = f'<svg viewBox="0 0 {WIDTH} {self.height}" role="img" xmlns="http://www.w3.org/2000/svg">'
        return "\n".join([head, f"<title>{escape(self.title)}</title>", *self.shapes, "</svg>"])


def versions() -> str:
    """Versions as intervals of row groups."""
    d = Drawing(270, "Row groups are shown from the version that they were born in to the one that they died in")
    left, step, top = 190, 100, 40
    for version, what in enumerate(("write", "append", "delete", "append", "write")):
        x = left + version * step
        d.text(x + step / 2, 18, f"version {version}", "text", "middle")
        d.text(x + step / 2, 34, what, "note", "middle")
        d.line(x, top + 6, x, 216, "grid")
    d.box(left + 2 * step, top + 2, step, 216, "mark", 0)
    rows = [
        ("row group A", 0, 4, "100 rows", "95 rows"),
        ("row group B", 1, 4, "50 rows", None),
        ("row group C", 3, 4, "20 rows", None),
        ("row group D", 4, 5, "80 rows", None),
    ]
    for at, (name, born, died, said, later) in enumerate(rows):
        y = top + 16 + at * 42
        d.text(12, y + 18, name)
        d.box(left + born * step + 3, y, (died - born) * step - 6, 28, "live")
        d.text(left + born * step + step / 2, y + 18, said, "on", "middle")
        if later:
            d.box(left + 2 * step, y, 5, 28, "dead", 0)
            d.text(left + 2.5 * step, y + 18, later, "on", "middle")
    d.text(left + 2.5 * step, 240, "as_of=2: A less 5 deleted rows, and B", "text", "middle")
    d.text(left + 2.5 * step, 258, "no row group was written for it", "note", "middle")
    return d.svg()


def commit() -> str:
    """A commit, from the call to the disk."""
    d = Drawing(300, "A commit: row groups, blocks, one entry of the log, then the new state")
    width, step = 150, 183
    above = [
        ["the call", "checks, draws rows"],
        ["row groups", "encoded on all threads"],
        ["blocks", "write, sync, rename"],
        ["the queue", "one thread leads"],
    ]
    below = [
        ["new state", "callers are answered"],
        ["one sync", "now it is durable"],
        ["one log entry", "all waiting commits"],
        ["checked again", "on the newest state"],
    ]
    for at in range(4):
        x = 8 + at * step
        d.labelled(x, 20, width, 52, above[at])
        d.labelled(x, 120, width, 52, below[at], "live" if at in (1, 2) else "box")
        if at:
            d.line(x - step + width, 46, x, 46, arrow=True)
            d.line(x, 146, x - step + width, 146, arrow=True)
    last, first = 8 + 3 * step + width / 2, 8 + width / 2
    d.line(last, 72, last, 120, arrow=True)
    d.path([(last, 172), (last, 230), (first, 230), (first, 176)], "dash", arrow=True)
    middle = (first + last) / 2
    d.text(middle, 222, "what it read was changed by others: refused (Conflict), nothing was done", "note", "middle")
    d.text(middle, 248, "where rows only moved, by a checkpoint say, it is built again", "note", "middle")
    d.text(8, 288, "A crash before the sync leaves the state before; after it, the state after.", "note")
    return d.svg()


def checkpoint() -> str:
    """A checkpoint."""
    d = Drawing(240, "A checkpoint writes the rows that some version shows into new row groups, and cuts the log")
    d.text(130, 20, "before", "text", "middle")
    d.text(590, 20, "after", "text", "middle")
    for at, (live, dead) in enumerate(((150, 90), (60, 180), (40, 20))):
        y = 36 + at * 36
        d.text(12, y + 18, "ABC"[at])
        d.box(30, y, live, 26, "live", 2)
        d.box(30 + live, y, dead, 26, "dead", 2)
    d.text(30, 160, "rows that a kept version shows", "note")
    d.box(12, 150, 12, 12, "live", 2)
    d.text(30, 180, "deleted rows", "note")
    d.box(12, 170, 12, 12, "dead", 2)
    d.line(300, 84, 420, 84, arrow=True)
    d.text(360, 74, "checkpoint", "text", "middle")
    d.text(360, 104, "order is kept", "note", "middle")
    d.text(440, 90, "D")
    d.box(460, 72, 250, 26, "live", 2)
    d.text(460, 124, "A, B and C: condemned, until reclaim", "note")
    d.box(460, 134, 120, 14, "dead", 2)
    d.text(12, 220, "log")
    for at in range(9):
        d.box(46 + at * 22, 206, 18, 18, "box", 2)
    d.line(300, 215, 420, 215, arrow=True)
    d.text(360, 206, "log is cut", "note", "middle")
    d.box(460, 206, 70, 18, "live", 2)
    d.text(495, 219, "catalog", "on", "middle")
    d.box(538, 206, 18, 18, "box", 2)
    d.text(566, 219, "and what came since", "note")
    return d.svg()


def reclaim() -> str:
    """Drop and reclaim."""
    d = Drawing(250, "Drop moves a table to the trash by one commit; reclaim frees its blocks")
    stages = [
        (10, "a table", "tree", "live", "blocks"),
        (190, "drop()", "trash", "live", "blocks"),
        (370, "reclaim(): a commit", None, "dead", "condemned"),
        (550, "reclaim(): deletes", None, None, None),
    ]
    for x, title, place, kind, said in stages:
        d.text(x + 75, 20, title, "text", "middle")
        if place:
            d.labelled(x + 25, 36, 100, 32, [place])
            d.line(x + 75, 68, x + 75, 88, arrow=True)
            d.labelled(x + 25, 88, 100, 32, ["versions"])
            d.line(x + 75, 120, x + 75, 140, arrow=True)
        for at in range(3):
            d.box(x + 10 + at * 46, 142, 38, 38, kind or "gone", 2)
        d.text(x + 75, 200, said or "space is free", "note", "middle")
    for x in (160, 340, 520):
        d.line(x, 104, x + 28, 104, arrow=True)
    d.path([(265, 212), (265, 230), (85, 230), (85, 212)], "dash", arrow=True)
    d.text(175, 246, "undrop()", "note", "middle")
    d.text(500, 226, "blocks that a snapshot, a copy", "note", "middle")
    d.text(500, 242, "or a reader needs stay, and are reported", "note", "middle")
    return d.svg()


DRAWINGS: dict[str, Callable[[], str]] = {
    "versions": versions,
    "commit": commit,
    "checkpoint": checkpoint,
    "reclaim": reclaim,
}
