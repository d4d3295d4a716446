"""Names of columns that DuckDB would change, because it ignores the case of ASCII letters, and has no empty ones."""

from collections.abc import Iterable

__all__ = ["renamed"]


def renamed(columns: Iterable[str], table: str) -> str | None:
    """Why DuckDB would give columns of a table other names, if it would; ``table`` is how code names it."""
    seen: dict[bytes, str] = {}
    for name in columns:
        way = f"rename it: store.table({table}).rename_columns({{{name!r}: ...}})"
        if not name:
            return f"a column without a name, to which DuckDB would give another; {way}"
        other = seen.setdefault(name.encode().lower(), name)
        if other != name:
            return f"columns {other!r} and {name!r}, which DuckDB cannot tell apart; {way}"
    return None
