"""The first rows as lines of text, for people."""

import reprlib
from typing import Any

from drumlin._optional import loaded
from drumlin._values.evidence import of_arrow, visible

__all__ = ["first_lines"]

#: How much is shown: rows, columns, characters of a value, characters of a line.
_ROWS, _COLUMNS, _CHARS, _WIDTH = 10, 12, 30, 118

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _CHARS
_SHORT.maxlist = _SHORT.maxtuple = _SHORT.maxdict = 4


def first_lines(reading: Any, known_rows: int | None) -> list[str]:
    """The first rows of a reading under the names of its columns, with what is left out. Nothing if pyarrow is not
    loaded, or if they cannot be read: text never fails because of what it shows."""
    pyarrow = loaded("pyarrow")
    if pyarrow is None:
        return []
    try:
        names = reading.schema.names
        if not names:
            return []
        head = getattr(reading, "head", None)
        shown = names[:_COLUMNS]
        batches = reading.collect(shown) if head is None else head(_ROWS + 1, shown)
        return [] if batches is None else _lines(pyarrow.table(batches), len(names), known_rows)
    except Exception:
        return []


def _lines(table: Any, columns: int, known_rows: int | None) -> list[str]:
    shown = table.slice(0, _ROWS)
    cells = [
        [visible(name, _CHARS), *map(_cell, column)] for name, column in zip(shown.column_names, shown, strict=True)
    ]
    numbers = [
        str(field.type).startswith(("int", "uint", "float", "double", "halffloat", "decimal")) for field in shown.schema
    ]
    widths = [max(map(len, column)) for column in cells]
    fits, used = 0, 0
    for width in widths:
        used += width + 2
        if fits and used > _WIDTH:
            break
        fits += 1
    lines = []
    for row in zip(*cells[:fits], strict=True):
        padded = zip(row, widths, numbers, strict=False)
        lines.append(
            "".join(f"  {text:>{width}}" if right else f"  {text:<{width}}" for text, width, right in padded).rstrip()
        )
    left = []
    if table.num_rows > _ROWS:
        left.append("more rows" if known_rows is None else f"{known_rows:,} rows")
    if fits < columns:
        left.append(f"{columns:,} columns")
    return lines + ([f"  … of {' and '.join(left)}"] if left else [])


def _cell(scalar: Any) -> str:
    if not scalar.is_valid:
        return "null"
    value = of_arrow(scalar)
    return visible(
        value
        if isinstance(value, str)
        else str(value)
        if not isinstance(value, (list, dict, bytes))
        else _SHORT.repr(value),
        _CHARS,
    )
