"""The columns of a table, the constraints on them, and when rows expire: added, renamed, widened, dropped."""

import datetime as dt
from collections.abc import Iterable, Mapping
from typing import Any, Generic, TypeVar, cast

from drumlin import _drumlin
from drumlin._arguments.applied import ColumnFunction, applied
from drumlin._arguments.checks import AsOf, Progress, as_of_argument, names, new_columns, note, optional_micros, renamed
from drumlin._arguments.constraints import Constraints, TimeToLive, checks_of, defaults_of
from drumlin._arguments.expr import Expr
from drumlin._arguments.fit import Fit, schema_of
from drumlin._arguments.frames import FrameLike, SchemaLike, to_schema, to_stream
from drumlin._arguments.generated import Generated
from drumlin._arguments.named import names_arguments
from drumlin._errors import InvalidArgument
from drumlin._values.evidence import a_type

__all__ = ["Columns"]

#: The version that a call made: a Version in a store, None in a transaction.
_V = TypeVar("_V")


@names_arguments()
class Columns(Generic[_V]):
    """What a table has for its columns."""

    __slots__ = ()

    _core: _drumlin.Table

    def add_columns(
        self,
        columns: SchemaLike | FrameLike,
        *,
        on: str | Iterable[str] | None = None,
        using: ColumnFunction | None = None,
        read: Iterable[str] | str | None = None,
        metadata: Any = None,
        progress: Progress | None = None,
    ) -> _V:
        """Makes a version with more columns, after the existing ones. ``columns`` maps names to Arrow types, or to
        pairs of a type and a default: the value in existing rows, and in later rows that lack the column
        (``schema="evolve"``). Without a default, it is null. No rows are written.

        Existing rows can also get computed values. With a pair of a type and an expression (:func:`drumlin.col`), they
        are computed from the existing columns. With ``on``, ``columns`` is a frame: its other columns are added, and
        each row gets the values of the frame's row with equal values in ``on``, or null. With ``using``, a function
        computes them: it gets record batches with the columns ``read`` (default: all), in any order of rows, and
        returns frames with the new columns and the same number of rows; it may use the store. Each of these makes two
        versions in one commit, one with the columns and one with their values; for large row groups, only the new
        columns are written.

        >>> import drumlin, pyarrow
        >>> numbers = drumlin.open("memory://").table("numbers")
        >>> _ = numbers.write({"n": [1, 2]}), numbers.add_columns({"weight": (pyarrow.float64(), 0.5)})
        >>> _ = numbers.add_columns({"heavy": (pyarrow.bool_(), drumlin.col("n") * 3 > 4)})
        >>> _ = numbers.add_columns({"n": [2], "name": ["two"]}, on="n")
        >>> _ = numbers.add_columns({"m": pyarrow.int64()}, using=lambda rows: {"m": rows["n"]}, read=["n"])
        >>> numbers.read().to_arrow().to_pylist()[1]
        {'n': 2, 'weight': 0.5, 'heavy': True, 'name': 'two', 'm': 2}
        """
        noted = note(metadata)
        if on is not None:
            if using is not None:
                raise InvalidArgument(
                    "give on, for the columns of a frame, or using, for those of a function, not both"
                )
            fit = Fit(onto=lambda: schema_of(self._core))
            equal, rows = names(on, "on"), to_stream(columns, fit, "columns")
            return cast(_V, self._core.join_columns(rows, equal, noted, progress))
        if using is not None:
            wanted = None if read is None else names(read, "read")
            schema = to_schema(columns, "columns")
            made = self._core.map_columns(schema, applied(using, schema), wanted, noted, progress)
            return cast(_V, made)
        if read is not None:
            raise InvalidArgument("read says which columns the function of using gets; give using too")
        schema, defaults, computed = new_columns(columns)
        return cast(_V, self._core.add_columns(schema, defaults, computed, noted, progress))

    def drop_columns(self, columns: Iterable[str] | str, *, metadata: Any = None) -> _V:
        """Makes a version without ``columns``. Older versions keep them, so their bytes stay too. Columns of the key or
        the sort order cannot be dropped.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.write("numbers", {"n": [1], "m": [2]})
        >>> _ = store.table("numbers").drop_columns(["m"])
        >>> store.read("numbers").to_arrow().to_pylist(), store.read("numbers", as_of=0).to_arrow().to_pylist()
        ([{'n': 1}], [{'n': 1, 'm': 2}])
        """
        return cast(_V, self._core.drop_columns(names(columns, "columns"), note(metadata)))

    def rename_columns(self, names: Mapping[str, str], *, metadata: Any = None) -> _V:
        """Makes a version in which columns are renamed: ``names`` maps old names to new ones, all at once. Older
        versions keep their names, also in their key and sort order.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.write("numbers", {"a": [1], "b": [2]})
        >>> _ = store.table("numbers").rename_columns({"a": "b", "b": "a"})
        >>> store.read("numbers").to_arrow().to_pylist()
        [{'b': 1, 'a': 2}]
        """
        return cast(_V, self._core.rename_columns(renamed(names), note(metadata)))

    def widen(self, types: SchemaLike, *, metadata: Any = None) -> _V:
        """Makes a version in which columns have wider Arrow types, which must hold all of their values: integers and
        floats with more bits, decimals with more digits, plain values instead of dictionaries, any type instead of
        null; a finer time unit, or floats instead of integers, if every value fits exactly. No rows are written.

        >>> import drumlin, pyarrow
        >>> store = drumlin.open("memory://")
        >>> _ = store.write("numbers", pyarrow.table({"n": pyarrow.array([1, 2], pyarrow.int8())}))
        >>> _ = store.table("numbers").widen({"n": pyarrow.int64()})
        >>> store.table("numbers").schema()
        Schema(n: int64)
        """
        return cast(_V, self._core.widen(to_schema(types, "types"), note(metadata)))

    def add_constraints(
        self,
        *,
        checks: Mapping[str, str | Expr] | None = None,
        not_null: Iterable[str] | str = (),
        defaults: Mapping[str, Any] | None = None,
        metadata: Any = None,
    ) -> _V:
        """Makes a version with constraints: from then on, no call adds a row that violates them. Existing rows must
        satisfy them too. ``checks`` maps names to predicates, written as for ``where``; a row violates a check that is
        false for it, not one that is unknown (null). Columns in ``not_null`` take no nulls. ``defaults`` are the values
        of columns that later rows lack, in calls that take such rows (:meth:`insert`, :meth:`upsert`, and others with
        ``schema="evolve"``), or what makes them: :func:`drumlin.now`, :func:`drumlin.uuid` or
        :func:`drumlin.sequence`. A violation raises ``SchemaMismatch``, which names the
        row, and nothing is written.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.write("trades", {"price": [7.5], "size": [3]})
        >>> _ = store.table("trades").add_constraints(checks={"positive": "price > 0"}, not_null=["size"])
        >>> store.append("trades", {"price": [-1.0], "size": [3]})
        Traceback (most recent call last):
            ...
        drumlin.SchemaMismatch: 'trades': check 'positive' (price > 0) does not hold in row 0 of the data: price is -1.0
        """
        required = names(not_null, "not_null")
        asked = self._core.add_constraints(checks_of(checks), required, *defaults_of(defaults), note(metadata))
        return cast(_V, asked)

    def drop_constraints(
        self,
        *,
        checks: Iterable[str] | str = (),
        not_null: Iterable[str] | str = (),
        defaults: Iterable[str] | str = (),
        metadata: Any = None,
    ) -> _V:
        """Makes a version without some constraints: checks by name, the others by column. Rows that have a default keep
        it.

        >>> import drumlin
        >>> trades = drumlin.open("memory://").table("trades")
        >>> _ = trades.write({"price": [7.5]}), trades.add_constraints(checks={"positive": "price > 0"})
        >>> _ = trades.drop_constraints(checks=["positive"])
        """
        gone = names(checks, "checks"), names(not_null, "not_null"), names(defaults, "defaults"), note(metadata)
        return cast(_V, self._core.drop_constraints(*gone))

    def set_ttl(self, column: str, *, after: dt.timedelta | None = None, metadata: Any = None) -> _V:
        """Makes a version whose rows expire: a row is seen until the time that it has in ``column``, a timestamp, and
        ``after`` that for some time more. From that instant on, no call sees it, and a new row may take its key. A row
        with null there does not expire; times without a time zone are in UTC. Existing rows expire like new ones.

        Reads of older versions and of times show what had not expired then, always the same. A checkpoint deletes the
        rows that expired more than an hour ago, as a version of kind ``expire``; their space follows the versions that
        still have them. If rows expired in another way before, those that have by now are deleted first: none comes
        back. O(1) without such rows. Raises ``InvalidArgument`` if the column is not a timestamp.

        >>> import datetime, drumlin
        >>> sessions = drumlin.open("memory://").table("sessions")
        >>> now = datetime.datetime.now(datetime.timezone.utc)
        >>> times = [now - datetime.timedelta(hours=1), now + datetime.timedelta(hours=1)]
        >>> _ = sessions.write({"user": ["ann", "ben"], "expires": times}), sessions.set_ttl("expires")
        >>> sessions.read(columns="user").to_arrow().to_pylist()
        [{'user': 'ben'}]
        >>> _ = sessions.set_ttl("expires", after=datetime.timedelta(minutes=90))
        >>> sessions.ttl()
        TimeToLive(column='expires', after=datetime.timedelta(seconds=5400))
        """
        if not isinstance(column, str):
            raise TypeError(f"column must be the name of a column, not {a_type(column)}")
        span = optional_micros(after, "after") or 0
        return cast(_V, self._core.set_ttl(column, span, note(metadata)))

    def drop_ttl(self, *, metadata: Any = None) -> _V:
        """Makes a version whose rows do not expire. Rows that have by now are deleted first, in the same version.
        Raises ``NotFound`` if its rows do not expire.

        >>> import datetime, drumlin
        >>> notes = drumlin.open("memory://").table("notes")
        >>> _ = notes.write({"until": [datetime.datetime(2100, 1, 1)]}), notes.set_ttl("until")
        >>> _ = notes.drop_ttl()
        >>> notes.ttl() is None
        True
        """
        return cast(_V, self._core.drop_ttl(note(metadata)))

    def ttl(self, *, as_of: AsOf | None = None) -> TimeToLive | None:
        """When rows expire: a column and a time after it. None if they do not.

        >>> import datetime, drumlin
        >>> notes = drumlin.open("memory://").table("notes")
        >>> _ = notes.write({"until": [datetime.datetime(2100, 1, 1)]}), notes.set_ttl("until")
        >>> notes.ttl()
        TimeToLive(column='until', after=datetime.timedelta(0))
        """
        found = self._core.ttl(as_of_argument(as_of))
        return None if found is None else TimeToLive(found[0], dt.timedelta(microseconds=found[1]))

    def constraints(self, *, as_of: AsOf | None = None) -> Constraints:
        """The constraints on the table's rows, and the defaults of columns that rows lack.

        >>> import drumlin
        >>> trades = drumlin.open("memory://").table("trades")
        >>> _ = trades.write({"price": [7.5]}), trades.add_constraints(not_null=["price"], defaults={"price": 1})
        >>> trades.constraints()
        Constraints(checks={}, not_null=['price'], defaults={'price': 1.0})
        """
        checks, required, defaults, made = self._core.constraints(as_of_argument(as_of))
        return Constraints(dict(checks), required, defaults | {name: Generated(text) for name, text in made})
