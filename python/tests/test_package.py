"""The package: its examples run, its types check."""

import doctest
import importlib
import inspect
import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import drumlin

PACKAGE = Path(drumlin.__file__).parent
#: They import engines that `make test-engines` installs.
LARGE = {"drumlin._clusters.daft_source", "drumlin._clusters.spark_source"}
PARTS = list(pkgutil.iter_modules([str(PACKAGE)]))
MODULES = [
    "drumlin",
    *(f"drumlin.{part.name}" for part in PARTS),
    *(
        f"drumlin.{part.name}.{module.name}"
        for part in PARTS
        if part.ispkg and part.name.startswith("_")
        for module in pkgutil.iter_modules([str(PACKAGE / part.name)])
        if f"drumlin.{part.name}.{module.name}" not in LARGE
    ),
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert result.failed == 0


def test_every_name_is_documented() -> None:
    for name in drumlin.__all__:
        thing = getattr(drumlin, name)
        if not isinstance(thing, type):
            continue
        assert thing.__doc__, name
        for member, value in vars(thing).items():
            if not member.startswith("_") and callable(value):
                assert value.__doc__, f"{name}.{member}"


def test_all_names_are_there() -> None:
    assert sorted(set(drumlin.__all__)) == sorted(drumlin.__all__)
    assert all(hasattr(drumlin, name) for name in drumlin.__all__)
    assert (PACKAGE / "py.typed").exists()


@pytest.mark.parametrize("call", ["read", "write"])
def test_clusters_take_the_same_arguments(call: str) -> None:
    """`drumlin.ray` says what they mean. Each declares them for itself, for help() and for checkers of types."""
    modules = [importlib.import_module(f"drumlin.{name}") for name in ("ray", "dask", "daft", "spark")]
    ray, *others = [inspect.signature(getattr(module, call)).parameters for module in modules]
    shared = [argument for argument in ray.values() if argument.name not in ("dataset", "options")]
    for other in others:
        assert [argument for argument in other.values() if argument.name in ray] == shared


@pytest.mark.parametrize("command", [["-m", "mypy"], ["stubtest.py"]], ids=["mypy", "stubtest"])
def test_types_check(command: list[str]) -> None:
    pytest.importorskip("mypy")
    arguments = [sys.executable, *command]
    result = subprocess.run(arguments, cwd=PACKAGE.parent, capture_output=True, text=True, timeout=600, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_command_line_runs(folder: str) -> None:
    with drumlin.open(folder) as store:
        store.write("prices/A", {"n": [1, 2, 3]})

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [os.path.join(os.path.dirname(sys.executable), "drumlin"), *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    listed = run("ls", folder)
    assert (listed.returncode, listed.stderr) == (0, "")
    assert "prices" in listed.stdout
    assert run("--help").returncode == 0
    assert drumlin.__version__ in run("--version").stdout
    wrong = run("ls", folder + "/none")
    assert wrong.returncode != 0
    assert wrong.stderr
