"""An open store."""

import datetime as dt
import functools
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, Literal, NamedTuple, Self, TypeVar, overload

from drumlin import _drumlin
from drumlin._arguments.checks import (
    Progress,
    count,
    micros,
    names,
    note,
    numbered_paths,
    one_of,
    optional_micros,
    optional_text,
    path_argument,
    paths_to_drop,
    rows_filter,
    text,
)
from drumlin._arguments.expr import Expr
from drumlin._arguments.frames import FrameLike, SchemaLike, to_schema, to_stream
from drumlin._arguments.named import flag, names_arguments
from drumlin._drumlin import (
    ChangeFeed,
    CheckpointReport,
    CopyToReport,
    DropReport,
    PurgePlan,
    PurgeReceipt,
    ReclaimReport,
    Snapshot,
    StagedReport,
    StoreStat,
    TrashItem,
    Ui,
    VacuumPlan,
    VerifyReport,
    Version,
)
from drumlin._errors import InvalidArgument
from drumlin._nouns.kept.views import Views
from drumlin._nouns.messaged import Messaged
from drumlin._nouns.replica import Replicated
from drumlin._nouns.sink import Sinks
from drumlin._nouns.tables import Tables
from drumlin._nouns.transaction import Transaction
from drumlin._processes import staged as jobs
from drumlin._processes.places import Address, address_of, find
from drumlin._processes.staged import Ticket, Token
from drumlin._results.metrics import Metrics
from drumlin._values.evidence import a_type
from drumlin.tree import PatternLike, plain_text

__all__ = ["Retention", "Store"]

_T = TypeVar("_T")


class Retention(NamedTuple):
    """How many versions a table keeps; if both fields are None, it keeps all of them."""

    keep_last: int | None = None
    keep_for: dt.timedelta | None = None


@names_arguments()
class Store(Tables[Version], Sinks, Views, Replicated):
    """An open store, made by :func:`drumlin.open`. The end of a ``with`` block closes it.

    :attr:`tree` has the nodes; :meth:`table` returns a handle on one table. Threads may share a store. A forked process
    must open it again.

    A store can be pickled: the pickle has its address and settings, but no secrets; a bucket's credentials come from
    the environment of the process that unpickles it. A process that has the store open gets that same store, so closing
    either closes both. A folder that another process writes is opened read-only. ``copy.copy`` returns the same object.

    >>> import drumlin
    >>> store = drumlin.open("memory://")
    >>> store.write("prices/us/AAPL", {"day": [1, 2], "close": [187.5, 190.0]}).rows
    2
    >>> store.append("prices/us/AAPL", {"day": [3], "close": [189.0]}).version
    1
    >>> store.read("prices/us/AAPL", where="close > 188", columns=["day"]).to_arrow().to_pydict()
    {'day': [2, 3]}
    """

    __slots__ = ("_core",)

    def __init__(self, core: _drumlin.Store) -> None:
        if not isinstance(core, _drumlin.Store):
            raise TypeError("a store is opened with drumlin.open(address)")
        super().__init__(core.tables(), core)
        self._core = core

    @property
    def uri(self) -> str:
        """The store's address."""
        return self._core.uri

    def __repr__(self) -> str:
        return f"Store({self._core.uri!r})"

    def _reduced(self) -> Any:
        return (store_at, (address_of(self._core),))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the store; later calls raise :class:`drumlin.Closed`. Open readers can finish. Triggers are no longer
        called; durable ones catch up with what they missed when the store is open again."""
        self._core.close()

    @property
    def seq(self) -> int:
        """The number of the newest commit that this process has seen."""
        return self._core.seq()

    def refresh(self) -> int:
        """Brings the store up to date with other processes' commits. Returns the number of the newest commit seen."""
        return self._core.refresh()

    def ui(self, *, port: int = 0, write: bool = False, open_browser: bool = True) -> Ui:
        """Shows the store in a browser: its tree, tables, versions, charts, layout on storage and commit log. The page
        is served on 127.0.0.1 only, on ``port`` (0: any free one), until the returned object is closed or garbage
        collected. Its address contains a token, without which nothing is shown. With ``write``, the page may run
        checkpoints and restore dropped tables; otherwise it changes nothing.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> with store.ui(open_browser=False) as page:
        ...     page.address.startswith("http://127.0.0.1:")
        True
        """
        number = count(port, "port")
        if number is None:
            raise TypeError("port must be a number, not None; 0 is any that is free")
        if number > 0xFFFF:
            raise InvalidArgument(f"port={number} is out of range; expected 0 to 65535")
        return self._core.ui(number, write, open_browser)

    def snapshot(
        self,
        name: str,
        pattern: PatternLike = "**",
        *,
        versions: Mapping[str, int] | None = None,
        including: str | None = None,
    ) -> Snapshot:
        """Gives a name to the newest versions of all tables that match ``pattern``; they stay readable until the
        snapshot is dropped. ``versions`` maps paths to numbers: the snapshot then holds exactly these versions.
        ``including`` names a snapshot whose versions are added, even those of tables that were dropped since.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.write("prices/A", {"n": [1]})
        >>> store.snapshot("eod", "prices/**").versions
        {'prices/A': 0}
        >>> _ = store.write("prices/A", {"n": [2]})
        >>> store.read("prices/A", as_of="eod").to_arrow()["n"].to_pylist()
        [1]
        >>> store.snapshot("second", versions={"prices/A": 1}).versions
        {'prices/A': 1}
        """
        return self._core.snapshot(
            name,
            plain_text(pattern),
            numbered_paths(versions, pattern, including),
            optional_text(including, "including"),
        )

    def drop_snapshot(self, name: str) -> None:
        """Drops a snapshot. Space that only this snapshot held can then be reclaimed."""
        self._core.drop_snapshot(name)

    def snapshots(self) -> list[Snapshot]:
        """All snapshots, in order of their names."""
        return self._core.snapshots()

    def set_retention(
        self,
        path: str,
        *,
        keep_last: int | None = None,
        keep_for: dt.timedelta | None = None,
        keep_all: bool = False,
        inherit: bool = False,
    ) -> None:
        """Sets how many versions the tables at ``path`` and below it keep: the last ``keep_last``, those that were the
        newest at some time within ``keep_for``, all of them, or (``inherit``) as set for the node above. What a
        snapshot holds is always kept.

        The setting applies to a table when its next version is made, and to all tables at the next checkpoint.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> store.set_retention("prices/**", keep_last=2)
        >>> for n in range(4):
        ...     _ = store.write("prices/A", {"n": [n]})
        >>> [v.version for v in store.table("prices/A").versions()]
        [2, 3]
        """
        if [keep_last is not None, keep_for is not None, keep_all, inherit].count(True) != 1:
            raise InvalidArgument("give one of keep_last, keep_for, keep_all and inherit")
        if keep_last is not None and count(keep_last, "keep_last") == 0:
            raise InvalidArgument("keep_last=0: a table keeps at least one version")
        self._core.set_retention(
            path,
            keep_last,
            optional_micros(keep_for, "keep_for"),
            keep_all,
        )

    def retention(self, path: str) -> Retention:
        """The retention in force at ``path``."""
        keep_last, keep_micros = self._core.retention(path)
        return Retention(keep_last, None if keep_micros is None else dt.timedelta(microseconds=keep_micros))

    def drop_and_reclaim(
        self,
        paths: PatternLike | Iterable[PatternLike],
        *,
        missing_ok: bool = False,
        block_grace: dt.timedelta | None = None,
        progress: Progress | None = None,
    ) -> tuple[DropReport, ReclaimReport]:
        """Drops tables as :meth:`drop` does, removes them for good in the same commit, and frees their space at once.
        In a store that other processes write too, blocks released less than ``block_grace`` ago stay (default: as in
        :func:`drumlin.open`).

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.write_many({"a/x": {"n": [1]}, "a/y": {"n": [1]}})
        >>> dropped, reclaimed = store.drop_and_reclaim("a/**")
        >>> dropped.paths, store.trash()
        (['a/x', 'a/y'], [])
        """
        rest = optional_micros(block_grace, "block_grace")
        return self._core.drop_and_reclaim(paths_to_drop(paths), missing_ok, rest, progress)

    def copy_to(
        self,
        other: "Store",
        pattern: PatternLike = "**",
        *,
        versions: Literal["all", "newest"] = "all",
        replace: bool = False,
        message: str | None = None,
        progress: Progress | None = None,
    ) -> CopyToReport:
        """Copies the tables that match ``pattern`` to the same paths of another store, in a folder or a bucket: with
        all their versions or only the newest, and with times, metadata, messages and writers. Row groups are copied in
        their encoded form, checked when read, and read back after they are written. Node payloads, snapshots and the
        trash are not copied.

        Tables that are already there with the same versions are skipped, so an interrupted call can be repeated. If a
        table there has other content, the call raises :class:`drumlin.AlreadyExists`; with ``replace``, that table goes
        to the trash there. The commits there carry ``message``, as in :meth:`with_message`.

        A purge of the other store covers copies made within it. It lists tables that came from different stores as not
        covered, since they may have rows in common.

        >>> import drumlin
        >>> store, backup = drumlin.open("memory://"), drumlin.open("memory://")
        >>> _ = store.write("prices/A", {"n": [1]})
        >>> _ = store.append("prices/A", {"n": [2]})
        >>> store.copy_to(backup, "prices/**").tables
        ['prices/A']
        >>> backup.read("prices/A", as_of=0).to_arrow()["n"].to_pylist()
        [1]
        """
        if not isinstance(other, Store):
            raise TypeError(f"other must be a Store, not {a_type(other)}")
        one_of(versions, "versions", ("all", "newest"))
        newest = versions == "newest"
        said = None if message is None else text(message, "message")
        return self._core.copy_to(other._core, pattern, newest, flag(replace, "replace"), said, progress)

    def trash(self) -> list[TrashItem]:
        """Dropped tables that can be restored, in the order in which they were dropped."""
        return self._core.trash()

    def undrop(self, path: str, *, to: str | None = None) -> None:
        """Restores the table most recently dropped from ``path`` with all its versions, to the path ``to``, which must
        hold no table; by default to where it was."""
        self._core.undrop(path, to)

    def with_message(self, message: str) -> Tables[Version]:
        """The same tables and tree, where every commit carries ``message``, of at most 4 KiB. The versions made show it
        (:attr:`Version.message`), and so do the store's :meth:`changes`.

        >>> import drumlin
        >>> store = drumlin.open("memory://", writer="importer")
        >>> nightly = store.with_message("nightly load")
        >>> _ = nightly.write("prices/A", {"n": [1, 2]})
        >>> _ = nightly.table("prices/A").delete("n = 1")
        >>> for path, version in store.history("prices/**"):
        ...     path, version.kind, version.rows_added, version.rows_removed, version.message, version.writer
        ('prices/A', 'delete', 0, 1, 'nightly load', 'importer')
        ('prices/A', 'write', 2, 0, 'nightly load', 'importer')
        """
        said = text(message, "message")
        begin = functools.partial(self.transaction, message=said)
        return Messaged(self._core, said, begin, functools.partial(self.transact, message=said))

    def transaction(self, *, read_only: bool = False, message: str | None = None) -> Transaction:
        """Begins a transaction, which is committed at the end of a ``with`` block. It blocks no other call. Its commit
        carries ``message``, as in :meth:`with_message`. With ``read_only``, it sees the store as it is now, whatever is
        committed later.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> with store.transaction() as tx:
        ...     _ = tx.tree.put("a", 1)
        ...     _ = tx.tree.put("b", tx.tree.get("a") + 1)
        >>> store.tree.get("b")
        2
        """
        said = None if message is None else text(message, "message")
        return Transaction(self._core.transaction(flag(read_only, "read_only"), said))

    def _at_one_instant(self) -> Tables[Any]:
        return self.transaction(read_only=True)

    def _atomically(self, function: Callable[[Tables[Any]], Any]) -> Any:
        return self.transact(function)

    def transact(self, function: Callable[[Transaction], _T], *, message: str | None = None) -> _T:
        """Calls ``function`` with a transaction, and commits it with ``message``; runs it again from the start if
        others have changed what it read or wrote. Returns what ``function`` returns; if that raises, nothing is
        committed.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.tree.put("stock", 3)
        >>> store.transact(lambda tx: tx.tree.put("stock", tx.tree.get("stock") - 1)).after.payload
        2
        """
        if not callable(function):
            raise TypeError(f"function must be a function of a transaction, not {a_type(function)}")
        transaction = self.transaction(message=message)
        while True:
            try:
                answer = function(transaction)
            except BaseException:
                transaction._core.abort()
                raise
            again = transaction._core.commit_or_again()
            if again is None:
                return answer
            transaction = Transaction(again)

    def changes(self, since: int | None = None) -> ChangeFeed:
        """The commits after number ``since``, including future ones: an iterator that waits for the next. 0 is the
        beginning, None is now. Raises :class:`drumlin.SnapshotExpired` if a checkpoint has removed some of these
        commits from the log.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> feed = store.changes()
        >>> _ = store.tree.put("config/x", 1)
        >>> commit = next(feed)
        >>> [(event.action, event.path, event.payload) for event in commit.events]
        [('create', 'config/x', 1)]
        >>> feed.next(timeout=0) is None
        True
        """
        return self._core.changes(count(since, "since"))

    def vacuum_plan(self, *, dead_share_min: float | None = None, budget: float | None = None) -> VacuumPlan:
        """What a checkpoint now would rewrite, table by table, and why; and the blocks that it would empty into others:
        those that are mostly dead, and small ones if there are many. See :meth:`checkpoint`.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> for n in range(3):
        ...     _ = store.write("numbers", {"n": [n]}) if n == 0 else store.append("numbers", {"n": [n]})
        >>> [plan] = store.vacuum_plan().tables
        >>> plan.row_groups_before, plan.row_groups_after
        (3, 1)
        """
        return self._core.vacuum_plan(dead_share_min, budget)

    def checkpoint(
        self,
        *,
        dead_share_min: float | None = None,
        budget: float | None = None,
        index_rows_min: int | None = None,
        progress: Progress | None = None,
    ) -> CheckpointReport:
        """Removes deleted rows from storage, merges small row groups, fills indexes, and shortens the log.
        :meth:`reclaim` then frees the space.

        ``dead_share_min`` is the smallest share of deleted rows at which row groups are rewritten (default 0.1);
        ``budget`` is the greatest share of the tables' bytes to rewrite, the most worthwhile first (default 1);
        ``index_rows_min`` is the number of rows from which an index takes in what it does not cover yet (default 4096).
        """
        fewest = None if index_rows_min is None else count(index_rows_min, "index_rows_min")
        return self._core.checkpoint(dead_share_min, budget, fewest, progress)

    def reclaim(
        self,
        *,
        grace: dt.timedelta = dt.timedelta(0),
        block_grace: dt.timedelta | None = None,
        fence_idle: dt.timedelta | None = None,
        audit: bool = False,
        progress: Progress | None = None,
    ) -> ReclaimReport:
        """Frees the space of dropped tables, expired versions and rewritten row groups. Tables dropped less than
        ``grace`` ago stay in the trash.

        In a store that other processes write too, blocks released less than ``block_grace`` ago stay (default: as in
        :func:`drumlin.open`). With ``fence_idle``, processes that have not committed for that long are declared dead,
        and what they left is deleted; one that is alive continues, and repeats a write in progress (one with over 64
        MiB of blocks fails). ``audit`` lists all objects and deletes those that nothing will ever refer to; where no
        other process writes, this is always done.
        """
        rest = optional_micros(block_grace, "block_grace")
        idle = optional_micros(fence_idle, "fence_idle")
        return self._core.reclaim(micros(grace, "grace"), rest, idle, audit, progress)

    @overload
    def purge(
        self, pattern: str, where: str | Expr, *, explain: Literal[False] = False, progress: Progress | None = None
    ) -> PurgeReceipt: ...
    @overload
    def purge(
        self, pattern: str, where: str | Expr, *, explain: Literal[True], progress: Progress | None = None
    ) -> PurgePlan: ...
    def purge(
        self, pattern: str, where: str | Expr, *, explain: bool = False, progress: Progress | None = None
    ) -> PurgeReceipt | PurgePlan:
        """Erases the rows for which ``where`` is true from the tables that match ``pattern`` and all tables that share
        rows with them: from every version, snapshot and copy, the trash and rows in memory; and from storage, the
        catalog and the log. This cannot be undone.

        The receipt lists what was erased, the deleted objects with their checksums, and the evidence that nothing is
        left. ``held`` lists what may still hold such rows, such as an open reader. Repeat a purge that was interrupted,
        or found something held, and it continues. Column names in ``where`` are those of each version. With
        ``explain``, nothing changes, and the call returns what would be erased.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.write("users/a", {"id": [1, 42]})
        >>> _ = store.append("users/a", {"id": [3]})
        >>> print(store.purge("users/**", "id = 42", explain=True))
        1 rows in 2 versions of 1 tables, 0 rows in memory; 1 row groups to write again (31 bytes)
        >>> receipt = store.purge("users/**", "id = 42")
        >>> receipt.erased.rows, receipt.complete
        (1, True)
        >>> store.read("users/a", as_of=0).to_arrow()["id"].to_pylist()
        [1]
        """
        if not isinstance(explain, bool):
            raise TypeError(f"explain must be True or False, not {a_type(explain)}")
        if explain:
            return self._core.purge_plan(pattern, rows_filter(where), progress)
        return self._core.purge(pattern, rows_filter(where), progress)

    def ticket(
        self,
        tables: Mapping[str, SchemaLike | None] | Iterable[str],
        *,
        mode: Literal["append", "overwrite", "upsert"] = "append",
        job: str | None = None,
        sort: Iterable[str] = (),
        life: dt.timedelta | None = None,
        work: dt.timedelta | None = None,
    ) -> Ticket:
        """Begins a job in which many processes write to ``tables``. Workers get the ticket, stage rows with it and
        return tokens; :meth:`commit` makes their rows part of the tables in one commit. For a table that does not exist
        yet, or is overwritten with other columns, give the schema of its rows; they are then ordered by ``sort``.

        The commit appends, replaces all rows (``mode="overwrite"``), or replaces rows with the same keys
        (``"upsert"``). It is remembered for 30 days under the name ``job``, and done once, however often it is
        repeated. What is staged is kept while this process renews the job, and for ``life`` (default 1 hour) after
        that; workers may write for ``work`` (default 1 day).

        >>> import drumlin, pickle, pyarrow, tempfile
        >>> store = drumlin.open(tempfile.mkdtemp() + "/store")
        >>> with store.ticket({"t": pyarrow.schema([("n", pyarrow.int64())])}, job="daily") as ticket:
        ...     worker = pickle.loads(pickle.dumps(ticket))
        ...     tokens = [worker.stage("t", {"n": [task]}, part=(task, 0)) for task in (2, 1)]
        ...     store.commit(tokens, ticket=ticket).versions
        {'t': 0}
        >>> store.read("t").to_arrow()["n"].to_pylist()
        [1, 2]
        """
        settings = jobs.job_settings(mode, job, sort, life, work)
        if isinstance(tables, Mapping):
            wanted = [(path_argument(path), None if of is None else to_schema(of)) for path, of in tables.items()]
        else:
            wanted = [(path, None) for path in names(tables, "tables")]
        return jobs.open_ticket(self._core, wanted, settings)

    def stage(
        self,
        path: str,
        data: FrameLike,
        *,
        mode: Literal["append", "overwrite", "upsert"] = "append",
        part: tuple[int, int] | None = None,
        progress: Progress | None = None,
    ) -> Token:
        """Writes rows for the table at ``path``, as a job of their own. They are part of no table until their token is
        committed, and are kept for an hour. To stage rows many times, use one :meth:`ticket`.

        >>> import drumlin, tempfile
        >>> store = drumlin.open(tempfile.mkdtemp() + "/store")
        >>> tokens = [store.stage("t", {"n": [n]}) for n in (1, 2)]
        >>> store.commit(tokens).versions
        {'t': 0}
        """
        settings, place = jobs.job_settings(mode), jobs.part_argument(part)
        fit = None if mode == "overwrite" else self.table(path)._fit_to_add(False)
        core = _drumlin.stage_alone(self._core, path, to_stream(data, fit), settings, place, progress)
        return jobs.token_of(core)

    def commit(
        self,
        tokens: Iterable[Token],
        *,
        ticket: Ticket | None = None,
        job: str | None = None,
        expected_version: int | Mapping[str, int] | None = None,
        metadata: Any = None,
        progress: Progress | None = None,
    ) -> StagedReport:
        """Makes staged rows part of their tables, for all tables and tokens in one commit: in the order of their parts
        or, without parts, in the given order. With a ticket of mode ``"overwrite"``, its tables without staged rows
        become empty.

        The commit is done once: if any process repeats it, it returns the same report; another commit of the same job
        raises :class:`AlreadyExists`. After :class:`InDoubt`, repeat it. With ``expected_version``, it raises
        :class:`Conflict` if a table is at another version, or has rows written by key since.
        """
        given = jobs.tokens_argument(tokens)
        expected = jobs.expected_versions(expected_version, given, jobs.ticket_argument(ticket))
        cores, own = [token._core for token in given], None if ticket is None else ticket._core
        report = _drumlin.commit_staged(self._core, own, cores, job, expected, note(metadata), progress)
        if ticket is not None:
            ticket._done()
        return report

    def abort(self, staged: Ticket | Iterable[Token]) -> bool:
        """Ends the job of a ticket, or of tokens, without a commit; :meth:`reclaim` deletes what was staged. Returns
        True, or False if the job was already committed."""
        if isinstance(staged, Ticket):
            staged._stop()
            return staged._core.abort(self._core)
        return _drumlin.abort_staged(self._core, [token._core for token in jobs.tokens_argument(staged, "staged")])

    def verify(self, *, deep: bool = True, progress: Progress | None = None) -> VerifyReport:
        """Reads every byte that the store refers to and checks it: its checksums, and that every row group can be
        decoded and matches its statistics. Damage is reported, not raised. It takes as long as reading all rows.

        :param deep: If ``False``, only checksums are checked, and nothing is decoded.

        >>> import drumlin
        >>> drumlin.open("memory://").verify().ok
        True
        """
        return self._core.verify(deep, progress)

    def stat(self) -> StoreStat:
        """The store's figures: counts, bytes and caches."""
        return self._core.stat()

    def metrics(self) -> Metrics:
        """Counters of the store's work since it was opened here, and what it holds in memory: commits, syncs, requests
        and bytes by kind, retries, cache hits, rows and row groups read and pruned, checkpoints, reclaims. Counting
        costs almost nothing, so it is always on.

        >>> import drumlin
        >>> store = drumlin.open("memory://")
        >>> _ = store.tree.put("a", 1)
        >>> store.metrics()["drumlin_commits_total"]
        1
        """
        return Metrics(*self._core.metrics())


def store_at(address: Address) -> Store:
    """The store at the address from a pickle."""
    return Store(find(Address(*address)))
