"""pyarrow filters, translated to the filter language where it has exactly the same meaning.

An expression shows its parts only when it is serialised, as an Arrow file: names and calls in order in the schema,
literals as Arrow scalars.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]
import pyarrow.compute as pc  # type: ignore[import-untyped, unused-ignore]

from drumlin._arguments.expr import Expr
from drumlin._drumlin import expression_parts
from drumlin._engines import filters
from drumlin._engines.filters import NAN, NOT_MINE, NotMine, value

__all__ = ["columns_of", "split", "split_for_datafusion", "with_order_keys"]

_OPS = {"equal": "==", "not_equal": "!=", "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">="}


#: Exceptions for an expression that cannot be taken apart, or is nested more deeply than Python's stack allows.
_NOT_UNDERSTOOD = (pa.ArrowException, NotMine, NotImplementedError, RecursionError)


class _Call:
    """A function call in an expression."""

    __slots__ = ("arguments", "name", "options")

    def __init__(self, name: str) -> None:
        self.name = name
        self.arguments: list[Any] = []
        self.options: dict[str, Any] = {}


class _Field(list[str]):
    """A column, or a field within one."""


def split(expression: Any, schema: pa.Schema) -> tuple[list[str], Any]:
    """Filters that are true where parts of ``expression`` are (all parts must be true), and the rest of it: a pyarrow
    expression, or None if nothing is left."""
    try:
        mine: list[str] = []
        left = False
        for term in _terms(_tree(expression)):
            try:
                filters.add(mine, _truth(term, schema))
            except NotMine:
                left = True
    except _NOT_UNDERSTOOD:
        return [], expression
    return mine, expression if left else None


def split_for_datafusion(
    expression: Any, schema: pa.Schema, *, push: bool = True
) -> tuple[list[str], Any, dict[str, str]]:
    """The same for DataFusion. For it, whether a null is among values is unknown. It compares floats by their total
    order: NaN comes after all others, or before them if its sign is set; only zeros are equal whatever their sign,
    though not in long lists. The filters keep all rows for which such comparisons are true. The rest of the expression
    compares integers in place of floats: these are columns that :func:`with_order_keys` adds to the rows, listed in the
    dict. Without ``push``, the rest is the whole expression."""
    keys: dict[str, str] = {}
    mine: list[str] = []
    rest = None
    try:
        for term in map(_as_in_sql, _terms(_tree(expression))):
            rebuilt = _rebuilt(term, schema, keys)
            floats = _has_floats(term, schema)
            try:
                if not push:
                    raise NOT_MINE
                filters.add(mine, _superset(term, schema) if floats else _truth(term, schema))
            except NotMine:
                floats = True
            if floats:
                rest = combined(rest, rebuilt)
    except _NOT_UNDERSTOOD:
        return [], expression, {}
    return mine, rest, keys


def _as_in_sql(tree: Any) -> Any:
    """The same tree, where a null is among values with the result null; pyarrow has false."""
    if not isinstance(tree, _Call):
        return tree
    if tree.name == "is_in":
        asked, found = _Call("is_valid"), _Call("if_else")
        asked.arguments = tree.arguments[:1]
        found.arguments = [asked, tree, pa.scalar(None, pa.bool_())]
        return found
    made = _Call(tree.name)
    made.arguments, made.options = list(map(_as_in_sql, tree.arguments)), tree.options
    return made


def columns_of(expression: Any) -> list[str] | None:
    """The columns that an expression uses; None if they are not known."""
    try:
        return list(dict.fromkeys(_columns(_tree(expression))))
    except _NOT_UNDERSTOOD:
        return None


def columns_of_all(expressions: Iterable[Any]) -> list[str] | None:
    """The columns that expressions use; None if they are not known."""
    found: list[str] = []
    for expression in expressions:
        columns = columns_of(expression)
        if columns is None:
            return None
        found += columns
    return found


def _columns(tree: Any) -> Iterator[str]:
    if isinstance(tree, _Field):
        yield tree[0]
    elif isinstance(tree, _Call):
        for argument in tree.arguments:
            yield from _columns(argument)


def _tree(expression: Any) -> Any:
    """An expression as a tree of calls, fields and scalars."""
    if isinstance(expression, pa.Scalar):
        return expression
    [serialised] = expression.__reduce__()[1]
    with pa.ipc.open_file(serialised) as file:
        literals = file.get_batch(0)
    parts = iter(expression_parts(memoryview(serialised).tobytes()))
    return _node(next(parts), parts, literals)


def _node(part: tuple[str, str], parts: Iterator[tuple[str, str]], literals: Any) -> Any:
    kind, text = part
    if kind == "literal":
        return literals.column(int(text))[0]
    if kind == "field_ref":
        return _Field([text])
    if kind == "nested_field_ref":
        return _Field([next(parts)[1] for _ in range(int(text))])
    if kind != "call":
        raise NOT_MINE
    call = _Call(text)
    for kind, text in parts:
        if kind == "end":
            return call
        if kind == "options":
            scalar = literals.column(int(text))[0]
            call.options = {name: scalar[name] for name in scalar.type.names}
        else:
            call.arguments.append(_node((kind, text), parts, literals))
    raise NOT_MINE


def _terms(tree: Any) -> Iterable[Any]:
    """The terms of a conjunction."""
    if isinstance(tree, _Call) and tree.name in ("and_kleene", "and"):
        for argument in tree.arguments:
            yield from _terms(argument)
    else:
        yield tree


def _truth(tree: Any, schema: pa.Schema) -> Expr:
    """A predicate of the filter language with the same three truth values."""
    if isinstance(tree, _Field):
        if not pa.types.is_boolean(_type(tree, schema)):
            raise NOT_MINE
        return filters.column(tree)
    if isinstance(tree, pa.Scalar):
        if tree.type != pa.bool_() or not tree.is_valid:
            raise NOT_MINE
        return value(tree.as_py())
    name, arguments = tree.name, tree.arguments
    if name in ("and_kleene", "or_kleene"):
        left, right = (_truth(argument, schema) for argument in arguments)
        return left & right if name == "and_kleene" else left | right
    if name == "invert":
        return ~_truth(arguments[0], schema)
    if name in _OPS and len(arguments) == 2:
        return _comparison(_OPS[name], arguments[0], arguments[1], schema)
    if name == "if_else":
        return _null_if_null(tree, schema)
    field = arguments[0] if arguments else None
    if not isinstance(field, _Field):
        raise NOT_MINE
    column, data_type = filters.column(field), _type(field, schema)
    match name:
        case "is_valid":
            return column.is_not_null()
        case "is_null":
            nan = _nan_is_null(tree) and pa.types.is_floating(data_type)
            return column.is_null() | (column == NAN) if nan else column.is_null()
        case "is_nan" if pa.types.is_floating(data_type):
            return column == NAN
        case "is_in":
            found, null = _among(tree, field, schema)
            return column.is_null() | found if null else column.is_not_null() & found
        case "starts_with" if not tree.options["ignore_case"].as_py() and _is_text(data_type):
            return filters.starts_with(column, tree.options["pattern"].as_py())
    raise NOT_MINE


def _nan_is_null(tree: _Call) -> bool:
    """Whether NaN counts as null; ``pyarrow.compute.is_null`` called as a function has no options."""
    option = tree.options.get("nan_is_null")
    return option is not None and bool(option.as_py())


def _null_if_null(tree: _Call, schema: pa.Schema) -> Expr:
    """``if_else(is_valid(x), is_in(x, values), null)``, as which DuckDB passes ``x in values``."""
    asked, found, other = tree.arguments
    shape = (
        isinstance(asked, _Call)
        and asked.name == "is_valid"
        and isinstance(found, _Call)
        and found.name == "is_in"
        and isinstance(asked.arguments[0], _Field)
        and asked.arguments[0] == found.arguments[0]
        and isinstance(other, pa.Scalar)
        and not other.is_valid
    )
    if not shape:
        raise NOT_MINE
    return _among(found, found.arguments[0], schema)[0]


def _among(tree: _Call, field: "_Field", schema: pa.Schema) -> tuple[Expr, bool]:
    """The predicate that a value is one of those given, null if it is null; and whether null is one of them."""
    data_type = _type(field, schema)
    if tree.options["null_matching_behavior"].as_py() != 0:
        raise NOT_MINE
    values = tree.options["value_set"].values
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    null = values.null_count > 0
    told = []
    for scalar in values.drop_null():
        plain = scalar.as_py() if pa.types.is_floating(scalar.type) else None
        # pyarrow looks for zeros and NaN by their bits.
        if plain is not None and (plain == 0 or plain != plain):
            raise NOT_MINE
        told.append(_literal(scalar, data_type))
    return filters.column(field).isin(told), null


def _comparison(op: str, left: Any, right: Any, schema: pa.Schema) -> Expr:
    if isinstance(left, pa.Scalar) and isinstance(right, _Field):
        left, right, op = right, left, filters.FLIPPED[op]
    if not isinstance(left, _Field):
        raise NOT_MINE
    data_type = _type(left, schema)
    column = filters.column(left)
    if isinstance(right, _Field):
        # For equal types, in which values are compared as they are.
        if _type(right, schema) != data_type or not _is_plain(data_type):
            raise NOT_MINE
        return filters.compare(op, column, filters.column(right))
    if not isinstance(right, pa.Scalar):
        raise NOT_MINE
    if pa.types.is_dictionary(right.type):
        right = right.value
    if not right.is_valid:
        raise NOT_MINE
    found = filters.compare(op, column, _literal(right, data_type))
    # NaN is the greatest value in the filter language; in pyarrow, no comparison with it is true.
    if op in (">", ">=") and pa.types.is_floating(data_type):
        return found & (column < NAN)
    return found


def _literal(scalar: Any, data_type: Any) -> Expr:
    """A literal that compares with a column of a type as in pyarrow."""
    types, own = pa.types, scalar.type
    plain = None if types.is_temporal(own) else scalar.as_py()
    if types.is_boolean(data_type) and types.is_boolean(own):
        return value(plain)
    if types.is_integer(data_type) and types.is_integer(own):
        # Beyond this, pyarrow could not convert one to the type of the other.
        if not filters.in_range(plain, data_type.bit_width, signed=types.is_signed_integer(data_type)):
            raise NOT_MINE
        return value(plain)
    if types.is_floating(data_type) and (types.is_floating(own) or types.is_integer(own)):
        number = float(scalar.as_py())
        if not filters.float_fits(number, data_type.bit_width) or number != plain:
            raise NOT_MINE
        return value(plain)
    if types.is_decimal(data_type) and data_type.precision <= 38 and (types.is_decimal(own) or types.is_integer(own)):
        return value(plain)
    if (_is_text(data_type) and _is_text(own)) or (_is_binary(data_type) and _is_binary(own)):
        return value(plain)
    if types.is_date32(data_type) and types.is_date32(own):
        return filters.day(scalar.value)
    if types.is_timestamp(data_type) and types.is_timestamp(own) and (data_type.tz is None) == (own.tz is None):
        return filters.instant(scalar.value, own.unit, zone=own.tz is not None)
    if types.is_time(data_type) and types.is_time(own):
        return filters.time_of_day(scalar.value, own.unit)
    if types.is_duration(data_type) and types.is_duration(own):
        return filters.span(scalar.value, own.unit)
    raise NOT_MINE


def _is_text(data_type: Any) -> bool:
    types = pa.types
    return bool(types.is_string(data_type) or types.is_large_string(data_type) or types.is_string_view(data_type))


def _is_binary(data_type: Any) -> bool:
    types = pa.types
    return bool(
        types.is_binary(data_type)
        or types.is_large_binary(data_type)
        or types.is_binary_view(data_type)
        or types.is_fixed_size_binary(data_type)
    )


def _is_plain(data_type: Any) -> bool:
    types = pa.types
    return bool(types.is_integer(data_type) or types.is_date32(data_type) or _is_text(data_type))


def _type(field: "_Field", schema: pa.Schema) -> Any:
    """The type of a column, or of a field within one."""
    at = schema.get_field_index(field[0])
    if at < 0:
        raise NOT_MINE
    found = schema.field(at).type
    for name in field[1:]:
        if not pa.types.is_struct(found) or found.get_field_index(name) < 0:
            raise NOT_MINE
        found = found.field(name).type
    # Dictionaries and views are compared by value.
    return found.value_type if pa.types.is_dictionary(found) else found


def _has_floats(tree: Any, schema: pa.Schema) -> bool:
    """Whether an expression compares floats."""
    if not isinstance(tree, _Call):
        return False
    if tree.name in _OPS or tree.name == "is_in":
        return any(isinstance(a, _Field) and pa.types.is_floating(_type(a, schema)) for a in tree.arguments)
    return any(_has_floats(argument, schema) for argument in tree.arguments)


def _superset(tree: Any, schema: pa.Schema) -> Expr:
    """A filter that is true at least where a comparison of a float with a literal is, whatever the order of zeros and
    NaN."""
    if isinstance(tree, _Call) and tree.name == "if_else":
        # Null is not true.
        tree = tree.arguments[1]
    if isinstance(tree, _Call) and tree.name in ("and_kleene", "or_kleene"):
        left, right = (
            _superset(argument, schema) if _has_floats(argument, schema) else _truth(argument, schema)
            for argument in tree.arguments
        )
        return left & right if tree.name == "and_kleene" else left | right
    if isinstance(tree, _Call) and tree.name == "is_in" and isinstance(tree.arguments[0], _Field):
        values = [number for number in tree.options["value_set"].values.to_pylist() if number == number]
        if not values or None in values:
            raise NOT_MINE
        column = filters.column(tree.arguments[0])
        return column.isin(values) | (column == NAN)
    if not (isinstance(tree, _Call) and tree.name in _OPS and len(tree.arguments) == 2):
        raise NOT_MINE
    op, (left, right) = _OPS[tree.name], tree.arguments
    if isinstance(left, pa.Scalar):
        left, right, op = right, left, filters.FLIPPED[op]
    if not isinstance(left, _Field) or not isinstance(right, pa.Scalar) or not right.is_valid or op == "!=":
        raise NOT_MINE
    number = right.as_py()
    column = filters.column(left)
    if not isinstance(number, float) or number != number:
        raise NOT_MINE
    op = {"<": "<=", ">": ">="}.get(op, op) if number == 0 else op
    return filters.compare(op, column, value(number)) | (column == NAN)


def _rebuilt(tree: Any, schema: pa.Schema, keys: dict[str, str]) -> Any:
    """The pyarrow expression, with integers in place of the floats that are compared."""
    if isinstance(tree, _Field):
        return pc.field(*tree) if len(tree) > 1 else pc.field(tree[0])
    if isinstance(tree, pa.Scalar):
        return pc.scalar(tree)
    floats = [a for a in tree.arguments if isinstance(a, _Field) and pa.types.is_floating(_type(a, schema))]
    if (tree.name in _OPS or tree.name == "is_in") and floats:
        if len(floats[0]) > 1:
            raise NOT_MINE
        data_type = _type(floats[0], schema)
        if tree.name == "is_in":
            values = tree.options["value_set"].values
            return pc.field(_key(floats[0], "bits", keys, schema)).isin(_keys_of(values.cast(data_type), "bits"))
        return pc.Expression._call(tree.name, [_order_key(a, data_type, keys, schema) for a in tree.arguments])
    arguments = [_rebuilt(argument, schema, keys) for argument in tree.arguments]
    match tree.name:
        case "is_in":
            return arguments[0].isin(tree.options["value_set"].values)
        case "is_null":
            return arguments[0].is_null(nan_is_null=_nan_is_null(tree))
        case _ if tree.options:
            raise NOT_MINE
    return pc.Expression._call(tree.name, arguments)


def _order_key(argument: Any, data_type: Any, keys: dict[str, str], schema: pa.Schema) -> Any:
    if isinstance(argument, _Field):
        return pc.field(_key(argument, "order", keys, schema))
    if not isinstance(argument, pa.Scalar):
        raise NOT_MINE
    return pc.scalar(_keys_of(pa.array([argument.as_py()], argument.type).cast(data_type), "order")[0])


def _key(field: "_Field", kind: str, keys: dict[str, str], schema: pa.Schema) -> str:
    """The name of the integer column that is compared in place of a column."""
    name = f"{kind} of {field[0]}"
    while name in schema.names:
        name += "'"
    keys[name] = field[0]
    return name


def _keys_of(floats: Any, kind: str) -> Any:
    """Integers with the order of floats, or their bits."""
    if pa.types.is_dictionary(floats.type):
        floats = floats.dictionary_decode()
    bits = {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[floats.type.bit_width]
    plain = floats.view(bits)
    if kind == "order":
        # Negative zero has only the sign bit set.
        negative = pa.scalar(-(1 << (bits.bit_width - 1)), bits)
        plain = pc.if_else(pc.equal(plain, negative), pa.scalar(0, bits), plain)
    rest = pa.scalar((1 << (bits.bit_width - 1)) - 1, bits)
    return pc.if_else(pc.less(plain, pa.scalar(0, bits)), pc.bit_wise_xor(plain, rest), plain)


def with_order_keys(batch: Any, keys: dict[str, str]) -> Any:
    """A batch with columns of integers added for floats."""
    for key, name in keys.items():
        batch = batch.append_column(key, _keys_of(batch.column(name), key.partition(" ")[0]))
    return batch


def combined(mine: Any, other: Any) -> Any:
    """Both pyarrow expressions combined; either of them may be None."""
    return other if mine is None else mine if other is None else pc.and_kleene(mine, other)
