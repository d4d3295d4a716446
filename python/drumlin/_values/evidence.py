"""Values as messages show them."""

import unicodedata
from typing import Any

#: Libraries whose types are shown with the library's name, not with that of the module that defines them.
_SHORTENED = ("drumlin", "numpy", "pandas", "polars", "pyarrow")


def shown(value: Any, most: int = 60) -> str:
    """A value as messages show it."""
    try:
        text = repr(value)
    except Exception:
        text = "<a value whose repr() raises>"
    return text if len(text) <= most else f"{text[: most - 3]}..."


def type_name(value: Any) -> str:
    """The type of a value as messages show it: ``str``, ``decimal.Decimal``, ``pandas.Timestamp``."""
    kind = type(value)
    module = kind.__module__
    if module == "builtins":
        return kind.__qualname__
    if module.partition(".")[0] in _SHORTENED:
        module = module.partition(".")[0]
    return f"{module}.{kind.__qualname__}"


def a_type(value: Any) -> str:
    """The type of a value with its article: ``a str``, ``an int``; ``None`` for None."""
    name = type_name(value)
    return "None" if value is None else f"{'an' if name[0] in 'aeiouAEIO' else 'a'} {name}"


def of_arrow(scalar: Any) -> Any:
    """The value of an Arrow scalar to be shown; as text if it is a time that Python cannot represent."""
    try:
        return scalar.as_py()
    except (ValueError, OverflowError, ImportError, ArithmeticError):
        return str(scalar)


#: Invisible characters that are part of normal text.
_JOINERS = "\u200c\u200d"


def visible(text: str, chars: int) -> str:
    """Text, cut to a number of characters. Those that would be invisible, or reverse the text around them, are shown as
    escapes."""
    cut = text[: chars + 1]
    return "".join(map(_visible, cut[:chars])) + ("…" if len(cut) > chars else "")


def _visible(char: str) -> str:
    if char in _JOINERS:
        return char
    if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"):
        return char.encode("unicode_escape", "surrogatepass").decode("ascii")
    return char
