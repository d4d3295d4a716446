"""Patterns over the tree, and conditions on nodes.

A pattern selects nodes. It is text (``"prices/*/A*"``) or a :class:`P`, whose parts may be conditions. Conditions are
made by the functions of this module and combined with ``&`` (and), ``|`` (or) and ``~`` (not). Put comparisons in
parentheses when you combine them.

>>> import drumlin
>>> from drumlin.tree import P, any, children, name, payload
>>> store = drumlin.open("memory://")
>>> _ = store.tree.put_many({"jobs/a": {"state": "done"}, "jobs/b": {"state": "open"}, "jobs/c/log": "..."})
>>> list(store.tree.nodes(P("jobs", payload("state") == "open")))
['jobs/b']
>>> list(store.tree.nodes(P("jobs", (payload("state") == "done") | (children() > 0))))
['jobs/a', 'jobs/c']
>>> _ = store.tree.delete("jobs/a", when=payload("state") == "done")
"""

import builtins
import json
import operator
from collections.abc import Iterator
from typing import Any, Final, NoReturn, TypeAlias, final

from drumlin import _drumlin
from drumlin._errors import InvalidArgument
from drumlin._values.evidence import a_type
from drumlin._values.json import to_json

__all__ = [
    "Condition",
    "Field",
    "Number",
    "P",
    "PatternLike",
    "all_",
    "any",
    "any_",
    "children",
    "children_version",
    "deep",
    "exists",
    "has_payload",
    "has_table",
    "name",
    "not_",
    "path",
    "payload",
    "payload_version",
    "regex",
]

_COMPARE = {
    "==": "equal",
    "!=": "not_equal",
    "<": "less",
    "<=": "less_or_equal",
    ">": "greater",
    ">=": "greater_or_equal",
}


@final
class Condition:
    """A condition on a node; made by the functions of :mod:`drumlin.tree`.

    For a path without a node, only ``exists(False)`` holds, and combinations of it with ``~``, ``&`` and ``|``.
    """

    # `_form` is the condition as JSON for the core, `_text` the expression that makes it. For a condition made by `&`
    # or `|`, `_members` are the conditions that it joins, so that a chain of them stays flat.
    __slots__ = ("_form", "_members", "_parsed", "_text")

    def __init__(self, form: str, text: str, members: "tuple[str, tuple[Condition, ...]]" = ("", ())) -> None:
        self._form = form
        self._text = text
        self._members = members
        self._parsed: _drumlin.Condition | None = None

    @property
    def _core(self) -> _drumlin.Condition:
        if self._parsed is None:
            self._parsed = _drumlin.Condition(self._form)
        return self._parsed

    def __and__(self, other: "Condition") -> "Condition":
        return _join("all", "&", (self, other)) if isinstance(other, Condition) else NotImplemented

    def __or__(self, other: "Condition") -> "Condition":
        return _join("any", "|", (self, other)) if isinstance(other, Condition) else NotImplemented

    def __invert__(self) -> "Condition":
        return Condition(f'{{"not":{self._form}}}', f"~{_bound(self)}")

    def __bool__(self) -> NoReturn:
        raise TypeError(
            "a condition has no truth value: combine with &, | and ~ (not and, or, not), each comparison in "
            "parentheses; instead of a < x < b write (a < x) & (x < b)"
        )

    def __eq__(self, other: object) -> bool:
        return self._form == other._form if isinstance(other, Condition) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._form)

    def __reduce__(self) -> tuple[Any, ...]:
        return Condition, (self._form, self._text, self._members)

    def __repr__(self) -> str:
        return self._text


def _bound(condition: Condition) -> str:
    """The condition's text, in parentheses if it is more than a call."""
    loose = condition._members[0] or condition._form.startswith(('{"payload', '{"children'))
    return f"({condition._text})" if loose else condition._text


def _join(kind: str, sign: str, conditions: tuple[Condition, ...]) -> Condition:
    members: list[Condition] = []
    for condition in conditions:
        members += condition._members[1] if condition._members[0] == kind else [condition]
    text = f" {sign} ".join(map(_bound, members))
    return Condition(f'{{"{kind}":[{",".join(member._form for member in members)}]}}', text, (kind, tuple(members)))


def not_(condition: Condition) -> Condition:
    """The condition does not hold: the same as ``~condition``."""
    return ~_checked(condition)


def all_(*conditions: Condition) -> Condition:
    """All of the conditions hold; without conditions, always true.

    >>> all_(has_payload(), children() == 0)
    has_payload() & (children() == 0)
    """
    return _join("all", "&", tuple(map(_checked, conditions))) if conditions else Condition('{"all":[]}', "all_()")


def any_(*conditions: Condition) -> Condition:
    """At least one of the conditions holds; without conditions, never true."""
    return _join("any", "|", tuple(map(_checked, conditions))) if conditions else Condition('{"any":[]}', "any_()")


def _checked(condition: Condition) -> Condition:
    if not isinstance(condition, Condition):
        raise TypeError(f"expected a condition made with drumlin.tree, not {a_type(condition)}")
    return condition


def any() -> Condition:
    """A node with any name: the part ``*`` of a pattern."""
    return name("*")


def name(glob: str) -> Condition:
    """The node's name matches ``glob``, in which ``*`` stands for any characters and ``?`` for one character."""
    if "/" in _text(glob, "a name"):
        raise InvalidArgument(f"{glob!r} is more than one name")
    return Condition(f'{{"name":{to_json(glob, "name")}}}', f"name({glob!r})")


def regex(pattern: str) -> Condition:
    """A part of the node's name matches a regular expression, in the syntax of Rust's ``regex``; use ``^`` and ``$`` to
    match the whole name."""
    form = to_json(_text(pattern, "a regular expression"), "regex")
    condition = Condition(f'{{"name_regex":{form}}}', f"regex({pattern!r})")
    # Parse it now, so that an invalid expression is an error here.
    condition._parsed = _drumlin.Condition(condition._form)
    return condition


def path(pattern: "PatternLike") -> Condition:
    """The node's path matches ``pattern``, which must have names only, no conditions."""
    whole = P(pattern)
    return Condition(f'{{"path":{whole._form}}}', f"path({pattern!r})")


def exists(there: bool = True) -> Condition:
    """The node exists, or with ``exists(False)``, it does not."""
    return _flag("exists", there)


def has_payload(there: bool = True) -> Condition:
    """The node has a payload, or with ``has_payload(False)``, it has none."""
    return _flag("has_payload", there)


def has_table(there: bool = True) -> Condition:
    """The node holds a table, or with ``has_table(False)``, it holds none."""
    return _flag("has_table", there)


def _flag(kind: str, there: bool) -> Condition:
    if not isinstance(there, bool):
        raise TypeError(f"{kind} takes True or False, not {a_type(there)}")
    return Condition(f'{{"{kind}":{json.dumps(there)}}}', f"{kind}({'' if there else 'False'})")


@final
class Field:
    """A field of a payload, for comparisons; made by :func:`payload`.

    Numbers compare with numbers by value, strings with strings; for other types, only ``==`` and ``!=`` can hold. For a
    node that lacks the field, no comparison holds.
    """

    __slots__ = ("_names", "_text")

    def __init__(self, names: tuple[str, ...], text: str) -> None:
        self._names = names
        self._text = text

    def _compare(self, compare: str, value: object, text: str) -> Condition:
        if isinstance(value, (bytes, bytearray, memoryview)):
            form = f'{{"bytes":{json.dumps([*bytes(value)])}}}'
        else:
            form = f'{{"json":{to_json(value, self._text)}}}'
        field = to_json(list(self._names), "payload")
        return Condition(f'{{"payload":{{"field":{field},"compare":"{compare}","value":{form}}}}}', text)

    def __eq__(self, value: object) -> Condition:  # type: ignore[override]
        return self._compare(_COMPARE["=="], value, f"{self._text} == {value!r}")

    def __ne__(self, value: object) -> Condition:  # type: ignore[override]
        return self._compare(_COMPARE["!="], value, f"{self._text} != {value!r}")

    def __lt__(self, value: Any) -> Condition:
        return self._compare(_COMPARE["<"], value, f"{self._text} < {value!r}")

    def __le__(self, value: Any) -> Condition:
        return self._compare(_COMPARE["<="], value, f"{self._text} <= {value!r}")

    def __gt__(self, value: Any) -> Condition:
        return self._compare(_COMPARE[">"], value, f"{self._text} > {value!r}")

    def __ge__(self, value: Any) -> Condition:
        return self._compare(_COMPARE[">="], value, f"{self._text} >= {value!r}")

    def contains(self, value: Any) -> Condition:
        """A string contains the string ``value``, a list the value, an object the name, bytes the bytes.

        >>> payload("tags").contains("new")
        payload('tags').contains('new')
        """
        return self._compare("contains", value, f"{self._text}.contains({value!r})")

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> NoReturn:
        raise TypeError("a field has no truth value: compare it")

    def __repr__(self) -> str:
        return self._text


def payload(*field: str | int) -> Field:
    """A field of the node's payload; without arguments, the whole payload. One argument is a name, or names joined by
    dots; of several arguments, each is one name as it is (or, for a list, a position).

    >>> payload("address.city") == "Oslo"
    payload('address.city') == 'Oslo'
    >>> payload("lines", 0, "price") > 10
    payload('lines', 0, 'price') > 10
    """
    text = f"payload({', '.join(map(repr, field))})"
    if len(field) == 1 and isinstance(field[0], str):
        return Field(tuple(field[0].split(".")), text)
    return Field(tuple(part if isinstance(part, str) else str(operator.index(part)) for part in field), text)


@final
class Number:
    """A count of a node, to be compared with an int."""

    __slots__ = ("_kind",)

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def _compare(self, sign: str, value: int) -> Condition:
        number = operator.index(value)
        if not 0 <= number < 2**64:
            raise InvalidArgument(f"{self!r} {sign} {number}: out of range; expected 0 or more")
        return Condition(f'{{"{self._kind}":["{_COMPARE[sign]}",{number}]}}', f"{self!r} {sign} {number}")

    def __eq__(self, value: int) -> Condition:  # type: ignore[override]
        return self._compare("==", value)

    def __ne__(self, value: int) -> Condition:  # type: ignore[override]
        return self._compare("!=", value)

    def __lt__(self, value: int) -> Condition:
        return self._compare("<", value)

    def __le__(self, value: int) -> Condition:
        return self._compare("<=", value)

    def __gt__(self, value: int) -> Condition:
        return self._compare(">", value)

    def __ge__(self, value: int) -> Condition:
        return self._compare(">=", value)

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> NoReturn:
        raise TypeError("a number about a node has no truth value: compare it")

    def __repr__(self) -> str:
        return f"{self._kind}()"


def payload_version() -> Number:
    """The number of times that the node's payload has been set."""
    return Number("payload_version")


def children() -> Number:
    """The number of the node's children."""
    return Number("children")


def children_version() -> Number:
    """The number of times that the node's list of children has changed."""
    return Number("children_version")


@final
class _Deep:
    """Any number of names."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "deep()"


_DEEP: Final = _Deep()


def deep() -> _Deep:
    """Any number of names, including none (at the end of a pattern, at least one): the part ``**`` of a pattern."""
    return _DEEP


@final
class P:
    """A pattern over the tree, with a part for each name of a path.

    A part is a name; a name with the wildcards ``*`` (any characters) and ``?`` (one character); ``"**"`` or
    :func:`deep` for any number of names; several of these joined by ``/``; a condition on the node at that place; or
    another pattern. ``/`` adds more parts.

    >>> from drumlin.tree import P, any, has_payload, name
    >>> P("prices/*/A*") == P("prices", any(), name("A*")) == "prices" / P("*") / "A*"
    True
    >>> P("config/**", has_payload())
    P('config/**', has_payload())
    """

    # The parts: text, or a condition with empty text. `_form` is the pattern as JSON for the core.
    __slots__ = ("_core", "_form", "_parts")

    _core: _drumlin.Pattern
    _form: str
    _parts: tuple[tuple[str, Condition | None], ...]

    def __init__(self, *parts: "str | Condition | _Deep | P") -> None:
        found: list[tuple[str, Condition | None]] = []
        for part in parts:
            match part:
                case P():
                    found += part._parts
                case str():
                    found += ((text, None) for text in part.split("/"))
                case Condition():
                    found.append(_plain(part))
                case _Deep():
                    found.append(("**", None))
                case _:
                    raise TypeError(
                        f"a part of a pattern must be a str, a condition, deep() or a P, not {a_type(part)}"
                    )
        self._parts = tuple(found)
        self._form = f"[{','.join(_part(text, condition) for text, condition in found)}]"
        self._core = _drumlin.Pattern(self._form)

    def __truediv__(self, part: "str | Condition | _Deep | P") -> "P":
        return P(self, part) if isinstance(part, (str, Condition, _Deep, P)) else NotImplemented

    def __rtruediv__(self, part: "str | Condition | _Deep") -> "P":
        return P(part, self) if isinstance(part, (str, Condition, _Deep)) else NotImplemented

    def __eq__(self, other: object) -> bool:
        return self._form == other._form if isinstance(other, P) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._form)

    def __reduce__(self) -> tuple[Any, ...]:
        return P, tuple(text if condition is None else condition for text, condition in self._parts)

    def __str__(self) -> str:
        return "/".join(text if condition is None else f"{{{condition!r}}}" for text, condition in self._parts)

    def __repr__(self) -> str:
        return f"P({', '.join(self._shown())})"

    def _shown(self) -> Iterator[str]:
        """The parts, with adjacent text joined."""
        plain: list[str] = []
        for text, condition in self._parts:
            if condition is None:
                plain.append(text)
                continue
            if plain:
                yield repr("/".join(plain))
                plain = []
            yield repr(condition)
        if plain:
            yield repr("/".join(plain))


#: A pattern that selects nodes: text such as ``prices/*/A*``, or a :class:`P`.
PatternLike: TypeAlias = str | P


def _plain(condition: Condition) -> tuple[str, Condition | None]:
    """A condition as a part: as text if it only tests the name."""
    glob: str | None = json.loads(condition._form).get("name")
    # The text `**` has another meaning.
    return ("", condition) if glob is None or glob == "**" else (glob, None)


def _part(text: str, condition: Condition | None) -> str:
    if condition is not None:
        return f'{{"if":{condition._form}}}'
    if text == "**":
        return '"deep"'
    kind = "glob" if "*" in text or "?" in text else "name"
    return f'{{"{kind}":{to_json(text, "pattern")}}}'


def plain_text(pattern: PatternLike) -> str:
    """The text of a pattern that has names only, no conditions."""
    if isinstance(pattern, str):
        return pattern
    if not isinstance(pattern, P):
        raise TypeError(f"expected a pattern (a str or a drumlin.P), not {a_type(pattern)}")
    if builtins.any(condition is not None for _, condition in pattern._parts):
        raise InvalidArgument(f"{pattern!r} holds a condition on nodes; here a pattern looks at names only")
    return str(pattern)


def _text(value: str, what: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{what} must be a str, not {a_type(value)}")
    return value
