"""Makes data sets, of the class that fits the installed packages."""

from typing import Protocol

from drumlin import _drumlin
from drumlin._arguments.checks import AsOf, FilterLike
from drumlin._errors import Error
from drumlin._nouns.dataset import Dataset, made
from drumlin._optional import have
from drumlin._processes.places import Address, to_read
from drumlin.tree import PatternLike


class Place(Protocol):
    """What a handle needs of the place of its table, a store or a transaction."""

    def scan(self, pattern: PatternLike, *, as_of: AsOf | None = None, where: FilterLike | None = None) -> Dataset:
        """The tables that match a pattern, with the rows for which ``where`` is true."""


def dataset(
    core: _drumlin.Dataset,
    store: _drumlin.Store | None,
    columns: list[str] | None,
    filters: list[str],
    limit: int | None,
    *,
    readable: bool = True,
) -> Dataset:
    """A data set; with pyarrow installed, it is a pyarrow Dataset too. With ``readable``, it fails if the types of a
    column in different tables have no common type."""
    if readable:
        core.check_readable(columns)
    if not have("pyarrow"):
        # Check columns and filters now.
        core.stream(columns, filters, 0)
        return made(Dataset, core, store, columns, filters, limit, again)
    from drumlin._engines.arrow_dataset import ArrowDataset

    return made(ArrowDataset, core, store, columns, filters, limit, again)


def again(
    address: Address,
    described: bytes,
    columns: list[str] | None,
    filters: list[str],
    limit: int | None,
) -> Dataset:
    """The data set from a pickle, in this process."""
    core = to_read(Address(*address))
    try:
        return dataset(core.dataset(described), core, columns, filters, limit)
    except Error:
        # This process may have last read the store before the data set was made.
        core.refresh()
        return dataset(core.dataset(described), core, columns, filters, limit)
