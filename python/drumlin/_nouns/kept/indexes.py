"""The indexes of a table: made, dropped, listed, rebuilt."""

from collections.abc import Iterable
from typing import Any

from drumlin import _drumlin
from drumlin._arguments.checks import Progress
from drumlin._arguments.expr import Expr
from drumlin._arguments.named import names_arguments
from drumlin._drumlin import Index
from drumlin._errors import InvalidArgument
from drumlin._values.evidence import a_type

__all__ = ["Indexes"]


def _texts(columns: Any) -> list[str]:
    """The columns of an index as text."""
    given = [columns] if isinstance(columns, (str, Expr)) else columns
    if not isinstance(given, Iterable):
        raise TypeError(f"columns must be names or expressions, such as ['sym', 'venue'], not {a_type(columns)}")
    texts = []
    for column in given:
        if not isinstance(column, (str, Expr)):
            raise TypeError(f"columns must be names or expressions, not {a_type(column)}: {column!r}")
        texts.append(str(column))
    return texts


def _name(name: Any) -> str:
    if not isinstance(name, str):
        raise TypeError(f"name must be the name of an index, not {a_type(name)}")
    return name


@names_arguments()
class Indexes:
    """What a table has for its indexes."""

    __slots__ = ()

    _core: _drumlin.Table

    def create_index(
        self,
        name: str,
        columns: str | Expr | Iterable[str | Expr],
        *,
        where: str | Expr | None = None,
        unique: bool = False,
        deferred: bool = False,
        progress: Progress | None = None,
    ) -> None:
        """Makes an index over ``columns``: names, and expressions in the language of ``where``. Reads with a filter on
        them use it where it takes fewer bytes than a scan; what they find is the same with and without it, in every
        version. With ``where``, the index has only the rows for which that is true, and serves filters that include it.

        With ``unique``, a commit that would leave two rows with the same values, none of them None, raises
        :class:`AlreadyExists <drumlin.AlreadyExists>` and does nothing, whichever call it comes from: also one that
        brings an older version back. Rows that change values with each other in one commit are fine. If the table has
        such rows already, the index is not made.

        The index is filled at once, while others read and write; with ``deferred``, and in a transaction, by the next
        checkpoints. Checkpoints also add what was written since; until then, that is scanned.
        :meth:`explain <drumlin.Dataset.explain>` tells which index a filter uses.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.write("trades", {"sym": ["a", "b"] * 500, "price": list(range(1000))})
        >>> store.table("trades").create_index("by_sym", ["sym", "price"])
        >>> store.scan("trades").where("sym = 'b' and price < 4").explain().indexes
        ['by_sym']
        >>> _ = store.write("people", {"name": ["Ann"], "email": ["ann@example.com"]})
        >>> store.table("people").create_index("email", "lower(email)", unique=True)
        >>> store.append("people", {"name": ["Anna"], "email": ["Ann@example.com"]})
        Traceback (most recent call last):
        drumlin.AlreadyExists: 'people': two rows would have lower(email) = ann@example.com, ...
        """
        if where is not None and not isinstance(where, (str, Expr)):
            raise TypeError(f"where must be text or an expression made with drumlin.col, not {a_type(where)}")
        condition = None if where is None else str(where)
        if condition is not None and not condition.strip():
            raise InvalidArgument("where is empty; leave it out for an index of all rows")
        self._core.create_index(_name(name), _texts(columns), condition, (unique, deferred), progress)

    def drop_index(self, name: str) -> None:
        """Drops an index. :meth:`Store.reclaim <drumlin.Store.reclaim>` frees its space.

        >>> import drumlin
        >>> numbers = drumlin.open("memory://").table("numbers")
        >>> _ = numbers.write({"n": [1, 2]}), numbers.create_index("n", "n"), numbers.drop_index("n")
        >>> numbers.indexes()
        []
        """
        self._core.drop_index(_name(name))

    def indexes(self) -> list[Index]:
        """The table's indexes, in the order in which they were made.

        >>> import drumlin
        >>> numbers = drumlin.open("memory://").table("numbers")
        >>> _ = numbers.write({"n": [1, 2]}), numbers.create_index("rest", "n % 2")
        >>> [(index.name, index.columns, index.entries) for index in numbers.indexes()]
        [('rest', ['n % 2'], 2)]
        """
        return self._core.indexes()

    def rebuild_index(self, name: str, *, progress: Progress | None = None) -> None:
        """Makes an index again from the rows, which mends it if its blocks are damaged or lost.

        >>> import drumlin
        >>> numbers = drumlin.open("memory://").table("numbers")
        >>> _ = numbers.write({"n": [1, 2]}), numbers.create_index("n", "n"), numbers.rebuild_index("n")
        """
        self._core.rebuild_index(_name(name), progress)
