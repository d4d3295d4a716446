"""A merge of a frame's rows into a table, according to whether the table has rows that match."""

from collections.abc import Callable, Mapping
from typing import Any, Self, TypeAlias

from drumlin._arguments.checks import assignments, filter_text
from drumlin._arguments.expr import Expr
from drumlin._arguments.named import names_arguments
from drumlin._drumlin import MergeReport
from drumlin._errors import InvalidArgument
from drumlin._habits import Habits
from drumlin._values.evidence import a_type

__all__ = ["Merge"]

#: Values of columns, by name; True: the values of the frame's columns with the same names.
Values: TypeAlias = Mapping[str, Any] | bool | None
#: A condition, the action, and the columns that it sets.
_Clause: TypeAlias = tuple[str | None, str, list[tuple[str, str]]]


@names_arguments()
class Merge(Habits):
    """A merge before it is executed; made by :meth:`Table.merge <drumlin.Table.merge>`. For each row, the first clause
    of its kind whose condition holds applies; if none does, nothing happens to the row. Conditions and values are
    expressions over ``source.x``, a column of the frame, and ``target.y``, a column of the table.

    >>> import drumlin
    >>> store = drumlin.open("memory://")
    >>> _ = store.write("stock", {"sku": ["a", "b", "c"], "n": [1, 2, 3]})
    >>> news = {"sku": ["b", "d"], "n": [20, 40]}
    >>> merge = store.table("stock").merge(news, on=["sku"])
    >>> report = (
    ...     merge.when_matched(update={"n": "target.n + source.n"})
    ...     .when_not_matched(insert=True)
    ...     .when_not_matched_by_source(delete=True, condition="target.n < 2")
    ...     .execute()
    ... )
    >>> report.updated, report.inserted, report.deleted
    (1, 1, 1)
    >>> store.read("stock").to_arrow().to_pylist()
    [{'sku': 'b', 'n': 22}, {'sku': 'c', 'n': 3}, {'sku': 'd', 'n': 40}]
    """

    __slots__ = ("_by_source", "_done", "_matched", "_not_matched", "_run")

    def __init__(self, run: Callable[[list[_Clause], list[_Clause], list[_Clause]], MergeReport]) -> None:
        self._run = run
        self._matched: list[_Clause] = []
        self._not_matched: list[_Clause] = []
        self._by_source: list[_Clause] = []
        self._done = False

    def __repr__(self) -> str:
        clauses = len(self._matched) + len(self._not_matched) + len(self._by_source)
        return f"Merge({clauses} clauses, {'executed' if self._done else 'execute() runs it'})"

    def when_matched(self, *, update: Values = None, delete: bool = False, condition: str | Expr | None = None) -> Self:
        """For rows of the table that match a row of the frame: sets columns to the values in ``update``
        (True: all of the frame's columns, to its values), or deletes the row."""
        self._matched.append(_clause(update, "update", delete, condition))
        return self

    def when_not_matched(self, *, insert: Values, condition: str | Expr | None = None) -> Self:
        """For rows of the frame that match no row of the table: adds a row with the values in ``insert`` (True: all
        values of the frame's row). Other columns get their default, or null."""
        self._not_matched.append(_clause(insert, "insert", False, condition))
        return self

    def when_not_matched_by_source(
        self, *, update: Mapping[str, Any] | None = None, delete: bool = False, condition: str | Expr | None = None
    ) -> Self:
        """For rows of the table that match no row of the frame: sets columns, or deletes the row."""
        self._by_source.append(_clause(update, "update", delete, condition))
        return self

    def execute(self) -> MergeReport:
        """Executes the merge, which makes one version. If nothing changes, no version is made."""
        if self._done:
            raise InvalidArgument("this merge was already executed; make a new one")
        report = self._run(self._matched, self._not_matched, self._by_source)
        self._done = True
        return report


def _clause(values: Values, verb: str, delete: bool, condition: str | Expr | None) -> _Clause:
    if not isinstance(delete, bool):
        raise TypeError(f"delete must be True or False, not {a_type(delete)}")
    given = values is not None and values is not False
    if given == delete:
        raise InvalidArgument(
            f"say either what to {verb} or delete=True" if verb == "update" else f"say what to {verb}"
        )
    when = filter_text(condition)
    if delete:
        return when, "delete", []
    if values is True:
        return when, f"{verb}_all", []
    return when, verb, assignments(values, verb)
