"""Converts names of other systems to paths of the tree, and back."""

from urllib.parse import unquote

from drumlin import InvalidArgument

__all__ = ["path_of", "symbol_of"]

_NAME_BYTES_MAX = 255
_PATH_BYTES_MAX = 4096
_NAMES_MAX = 120
_HEX = frozenset("0123456789abcdefABCDEF")


def path_of(symbol: str, prefix: str = "") -> str:
    """The path of the table that a symbol becomes: ``prefix`` and the symbol, in which ``/`` separates names.

    Characters that a path cannot hold are written as ``%`` and two hexadecimal digits for each byte: ``*``, ``?``,
    control characters, a slash that begins or ends the symbol or follows another one, the dots of a name that is ``.``
    or ``..``, and a ``%`` that looks like the start of such a code. :func:`symbol_of` is the inverse.

    >>> from drumlin.migrate import path_of, symbol_of
    >>> path_of("us/AAPL", "prices"), path_of("odd?/../100%"), path_of("a//b%2F")
    ('prices/us/AAPL', 'odd%3F/%2E%2E/100%', 'a/%2Fb%252F')
    >>> symbol_of("prices/us/AAPL", "prices"), symbol_of("odd%3F/%2E%2E/100%"), symbol_of("a/%2Fb%252F")
    ('us/AAPL', 'odd?/../100%', 'a//b%2F')
    """
    return _path(symbol, prefix, percent=True)


def file_path(name: str, prefix: str) -> str:
    """The path for the name of a file or folder. A name that is a valid path stays as it is, so two different names may
    become the same path."""
    return _path(name, prefix, percent=False)


def _path(symbol: str, prefix: str, percent: bool) -> str:
    if not symbol:
        raise InvalidArgument("a symbol with an empty name cannot become a path")
    try:
        symbol.encode()
    except UnicodeEncodeError:
        raise InvalidArgument(f"the symbol {symbol!r} holds half a surrogate pair, and cannot become a path") from None
    text = "".join(_escaped(symbol, at, percent) for at in range(len(symbol)))
    names = [name.replace(".", "%2E") if name in (".", "..") else name for name in text.split("/")]
    path = "/".join([prefix.strip("/"), *names] if prefix.strip("/") else names)
    long = max(len(name.encode()) for name in names)
    if long > _NAME_BYTES_MAX or len(path.encode()) > _PATH_BYTES_MAX or path.count("/") >= _NAMES_MAX:
        raise InvalidArgument(
            f"the symbol {symbol[:40]!r}... makes a path of {len(path.encode())} bytes, {path.count('/') + 1} names "
            f"and a name of {long} bytes; a path has at most {_PATH_BYTES_MAX}, {_NAMES_MAX} and {_NAME_BYTES_MAX}"
        )
    return path


def symbol_of(path: str, prefix: str = "") -> str:
    """The symbol for which :func:`path_of` returned ``path``."""
    top = prefix.strip("/")
    if top and not path.startswith(f"{top}/"):
        raise InvalidArgument(f"the path {path!r} is not below {top!r}")
    return unquote(path[len(top) + 1 :] if top else path)


def _escaped(symbol: str, at: int, percent: bool) -> str:
    """The character at an index of the symbol, as it is written in the path."""
    char = symbol[at]
    if char == "/":
        # A slash that separates two names stays.
        stays = 0 < at < len(symbol) - 1 and symbol[at - 1] != "/"
        return char if stays else "%2F"
    looks = percent and char == "%" and len(symbol) >= at + 3 and _HEX.issuperset(symbol[at + 1 : at + 3])
    if looks or char in "*?" or ord(char) < 0x20 or 0x7F <= ord(char) < 0xA0:
        return "".join(f"%{byte:02X}" for byte in char.encode())
    return char
