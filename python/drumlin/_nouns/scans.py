"""Data sets of the class that fits what is installed, and what makes them."""

from typing import Protocol

from drumlin import _drumlin
from drumlin._arguments.expr import Expr
from drumlin._errors import Error
from drumlin._nouns.dataset import Dataset, made
from drumlin._optional import have
from drumlin._processes.places import Address, to_read
from drumlin.tree import PatternLike


class Place(Protocol):
    """Where tables are, a store or a transaction, as far as a handle on one needs it."""

    def scan(self, pattern: PatternLike, *, where: str | Expr | None = None) -> Dataset:
        """The tables that a pattern matches, with the rows for which ``where`` is true."""


def dataset(
    core: _drumlin.Dataset,
    store: _drumlin.Store | None,
    columns: list[str] | None,
    filters: list[str],
    limit: int | None,
    *,
    readable: bool = True,
) -> Dataset:
    """A data set, of the class that there is: pyarrow's too if it is installed. Unless it need not be ``readable``, no
    type may lack for the values of a column."""
    if readable:
        core.check_readable(columns)
    if not have("pyarrow"):
        # Columns and filters are checked now.
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
    """What was pickled, in this process."""
    core = to_read(Address(*address))
    try:
        return dataset(core.dataset(described), core, columns, filters, limit)
    except Error:
        # The store may have been read before the data set was made.
        core.refresh()
        return dataset(core.dataset(described), core, columns, filters, limit)
