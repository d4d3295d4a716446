"""What goes in by each door comes out equal by each door, or is refused: doors by doors by types with extreme values.

`make test` draws some triples again in each run; `DRUMLIN_DOORS` says how many, or `all`.
"""

import os
import random
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from doors import ARRAYS, IN, OUT, NotHere, loose, of_arrow

import drumlin

DOORS = os.environ.get("DRUMLIN_DOORS", "120")
SEED = int(os.environ.get("DRUMLIN_SEED", random.randrange(2**32)))
#: Errors that say that values are refused: the store's, and those of libraries that cannot take what it hands them.
REFUSED = (
    drumlin.Error,
    TypeError,
    ValueError,
    OverflowError,
    NotImplementedError,
    pa.ArrowException,
    pl.exceptions.PolarsError,
    pl.exceptions.PanicException,
    duckdb.Error,
)
#: Doors out that do not tell a day from a moment, no value from no number.
LOOSE = {"pandas", "numpy", "Polars", "lazy Polars"}


#: What a library makes of what the store hands it, with other values: DuckDB's intervals are in microseconds.
BEYOND = {("DuckDB", "duration[ns]")}


def triples() -> list[tuple[str, str, str]]:
    every = [(came, went, name) for came in IN for went in OUT for name in ARRAYS if (went, name) not in BEYOND]
    return every if DOORS == "all" else random.Random(SEED).sample(every, int(DOORS))


INFINITE = [of_arrow(pa.array([number]))[0] for number in (float("inf"), float("-inf"), float("nan"))]


def compared(went: str, values: list[Any]) -> list[Any]:
    values = [loose(value) for value in values] if went in LOOSE else values
    if went == "JSON":
        return [_in_json(value) for value in values]
    if went == "DuckDB":
        return [_in_micros(value) for value in values]
    return [None if value == ("text", b"") else value for value in values] if went == "CSV" else values


def _in_micros(value: Any) -> Any:
    """At any depth, spans without nanoseconds: DuckDB has some only where its own arithmetic goes beyond 64 bits."""
    if isinstance(value, tuple) and value[:1] == ("span",):
        return ("span", value[1] // 1000 if value[1] >= 0 else -(-value[1] // 1000))
    return tuple(map(_in_micros, value)) if isinstance(value, tuple) else value


def _in_json(value: Any) -> Any:
    """At any depth, null for numbers that JSON does not have."""
    if value in INFINITE:
        return None
    return tuple(map(_in_json, value)) if isinstance(value, tuple) else value


def entered(came: str, name: str, folder: Path) -> tuple[list[Any], list[Any]] | None:
    """What a door handed over, and what is in the store; None if it was refused."""
    store = drumlin.open(folder / "s")
    try:
        given = IN[came](store, folder, ARRAYS[name])
    except NotHere:
        return None
    except REFUSED:
        return None
    finally:
        store.close()
    with drumlin.open(folder / "s") as store:
        held = of_arrow(store.read("t", columns=["v"]).to_arrow()["v"])
    return given, held


def check_in(came: str, name: str, given: list[Any], held: list[Any]) -> None:
    if came == "CSV":
        # As it prints: text, or the same number or time.
        given = [None if text in (None, "") else text for text in given]
        assert [text is None for text in given] == [value is None for value in held]
        assert agrees(name, given, held), f"{name} by CSV"
        return
    if came == "JSON":
        assert [_number(value) for value in held] == [_number(value) for value in given] or texts_of(given) == held
        return
    if came in ("pandas", "numpy"):
        given, held = [loose(value) for value in given], [loose(value) for value in held]
    assert held == given, f"{name} by {came}"


def _number(form: Any) -> Any:
    """Numbers of JSON are equal whether they have a point or not."""
    if form is None:
        return None
    if form[0] == "int" and abs(form[1]) <= 2**53:
        return of_arrow(pa.array([float(form[1])]))[0]
    if form[0] in ("list", "struct"):
        parts = [(part[0], _number(part[1])) if form[0] == "struct" else _number(part) for part in form[1]]
        return (form[0], tuple(parts))
    return form


def texts_of(given: list[Any]) -> list[Any]:
    return [
        None if form is None else ("text", form[1] if form[0] == "text" else str(form[1]).encode()) for form in given
    ]


def agrees(name: str, texts: list[Any], held: list[Any]) -> bool:
    """Whether values that were read from texts without a type are what these say."""
    array = ARRAYS[name]
    if all(value is None or value[0] == "text" for value in held):
        return [None if value is None else value[1].decode() for value in held] == texts
    kinds = {value[0] for value in held if value is not None}
    assert len(kinds) == 1, "a column has one type"
    if kinds == {"float"}:
        read = [None if text is None else of_arrow(pa.array([float(text)]))[0] for text in texts]
    elif kinds == {"int"}:
        read = [None if text is None else ("int", int(text)) for text in texts]
        assert all(text is None or str(int(text)) == text for text in texts), "leading zeros"
    else:
        read = [loose(value) for value in of_arrow(array)]
        held = [loose(value) for value in held]
    return read == held


@pytest.mark.parametrize(("came", "went", "name"), triples(), ids=str)
def test_what_goes_in_comes_out(came: str, went: str, name: str, tmp_path: Path) -> None:
    entry = entered(came, name, tmp_path)
    if entry is None:
        return
    given, held = entry
    check_in(came, name, given, held)
    store = drumlin.open(tmp_path / "s")
    try:
        out = OUT[went](store, tmp_path)
    except REFUSED:
        return
    finally:
        store.close()
    assert compared(went, out) == compared(went, held), f"{name} by {came}, out by {went} (seed {SEED})"


def test_each_type_passes_some_door() -> None:
    """The matrix is no empty one: most doors take most types."""
    passed = dict.fromkeys(ARRAYS, 0)
    for name, array in ARRAYS.items():
        for door in ("pyarrow", "dict"):
            store = drumlin.open("memory://")
            try:
                IN[door](store, Path("."), array)
                passed[name] += 1
            except REFUSED:
                pass
    assert all(passed.values()), passed
    assert sum(passed.values()) > 1.7 * len(ARRAYS), passed
