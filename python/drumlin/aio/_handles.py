"""Classes whose methods are those of a class of the package, awaited.

They are made from that class, method by method, so that none is forgotten. A method that returns another handle, such
as ``table`` or ``read``, is not awaited: it only records what is asked, and the first awaited call does all of it, one
step after the other, on threads. Everything else is awaited, including properties.
"""

import asyncio
import functools
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Mapping
from types import TracebackType
from typing import Any, ClassVar, Generic, Self, TypeVar

from drumlin.aio._calls import run

#: Makes a handle from a function that will return its object.
Giver = Callable[[Callable[[], Awaitable[Any]]], "Handle"]

#: Methods that only look up something in memory, and run on the event loop's thread.
_NEAR = ("keys", "rows", "table", "tree")
#: Methods that wait for what others do.
_WAITING = ("next", "wait_for_triggers")
_END = object()
#: The type of an iterator's items.
_T = TypeVar("_T")


class Handle:
    """An object of the package, which is made on a thread when it is first needed."""

    __slots__ = ("_lock", "_make", "_object")

    #: The class whose methods it has.
    of: ClassVar[type]
    #: The methods that return a handle.
    giving: ClassVar[dict[str, Giver]]

    def __init__(self, make: Callable[[], Awaitable[Any]]) -> None:
        if not callable(make):
            raise TypeError("a store is opened with drumlin.aio.open(address), which has all the others")
        self._make, self._object = make, None
        self._lock = asyncio.Lock()

    def __await__(self) -> Generator[Any, None, Self]:
        yield from self._get().__await__()
        return self

    def __repr__(self) -> str:
        made = self._object
        return f"aio.{type(self).__name__}(not awaited yet)" if made is None else f"aio.{made!r}"

    def __reduce__(self) -> Any:
        raise TypeError(f"an aio.{type(self).__name__} is not pickled; pickle that of drumlin, and open it again")

    async def _get(self) -> Any:
        if self._object is None:
            # If the task that makes it is cancelled, the next task makes it.
            async with self._lock:
                if self._object is None:
                    self._object = await self._make()
        return self._object

    async def _call(self, name: str, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
        """The result of a method or property of the object."""
        made = await self._get()
        plain = [await _plain(argument) for argument in arguments]
        by_name = {key: await _plain(argument) for key, argument in named.items()}
        ask = functools.partial(_ask, made, name, plain, by_name)
        return ask() if name in _NEAR else await run(ask, waits=name in _WAITING)

    def _later(self, name: str, *arguments: Any, **named: Any) -> Callable[[], Awaitable[Any]]:
        return lambda: self._call(name, arguments, named)


def _ask(made: Any, name: str, arguments: list[Any], named: dict[str, Any]) -> Any:
    attribute = getattr(made, name)
    return attribute(*arguments, **named) if callable(attribute) else attribute


async def _plain(argument: Any) -> Any:
    """An argument in the form that the package takes: for a handle, its object; also within a dict."""
    if isinstance(argument, Handle):
        return await argument._get()
    if isinstance(argument, dict) and any(isinstance(value, Handle) for value in argument.values()):
        return {key: await _plain(value) for key, value in argument.items()}
    return argument


async def each(items: Callable[[], Awaitable[Any]]) -> AsyncIterator[Any]:
    """The items of an iterator, each taken on a thread."""
    iterator = await items()
    while (item := await run(lambda: next(iterator, _END))) is not _END:
        yield item


class Iterated(Handle, Generic[_T]):
    """A handle of an iterable."""

    __slots__ = ()

    def __aiter__(self) -> AsyncIterator[_T]:
        return self._each(iter)

    def _each(self, take: Callable[[Any], Any]) -> AsyncIterator[Any]:
        """The items of the iterator that ``take`` makes of the object."""

        async def items() -> Any:
            made = await self._get()
            return await run(lambda: take(made))

        return each(items)


class Block(Handle):
    """A handle for ``async with``."""

    __slots__ = ()

    async def __aenter__(self) -> Self:
        return await self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        made = await self._get()
        await run(lambda: made.__exit__(kind, error, traceback))


_H = TypeVar("_H", bound=Handle)


class Property(property):
    """A property that is awaited."""


class Pending:
    """The value of a property, when it is awaited."""

    __slots__ = ("_ask",)

    def __init__(self, ask: Callable[[], Awaitable[Any]]) -> None:
        self._ask = ask

    def __await__(self) -> Generator[Any, None, Any]:
        return self._ask().__await__()


def public(kind: type) -> list[str]:
    """The names that a class defines itself or inherits from the package, not those of Python's own classes."""
    kinds = [one for one in kind.__mro__ if one.__module__.partition(".")[0] in ("drumlin", "_drumlin")]
    return sorted({name for one in kinds for name in vars(one) if not name.startswith("_")})


def awaits(of: type, **giving: Giver) -> Callable[[type[_H]], type[_H]]:
    """Adds to a class of handles the methods of the class ``of`` that it lacks; those in ``giving`` return handles."""

    def fill(kind: type[_H]) -> type[_H]:
        kind.of, kind.giving = of, giving
        for name in public(of):
            if not hasattr(kind, name):
                setattr(kind, name, _awaited(name, inspect.getattr_static(of, name), giving.get(name)))
        return kind

    return fill


def _awaited(name: str, attribute: Any, giver: Giver | None) -> Any:
    if not callable(attribute):
        if giver is None:
            return Property(lambda self: Pending(self._later(name)), doc=attribute.__doc__)
        return property(lambda self: giver(self._later(name)), doc=attribute.__doc__)
    if giver is None:

        @functools.wraps(attribute)
        async def call(self: Handle, /, *arguments: Any, **named: Any) -> Any:
            return await self._call(name, arguments, named)

        return call

    @functools.wraps(attribute)
    def give(self: Handle, /, *arguments: Any, **named: Any) -> Handle:
        return giver(self._later(name, *arguments, **named))

    return give
