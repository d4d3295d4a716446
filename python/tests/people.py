"""A small keyed table that several tests use."""

import datetime as dt
from typing import Any

import pyarrow as pa

import drumlin

PEOPLE = pa.schema([("id", pa.int32()), ("name", pa.string()), ("born", pa.date32())])
ADA = {"id": 1, "name": "Ada", "born": dt.date(1815, 12, 10)}
GRACE = {"id": 2, "name": "Grace", "born": None}


def rows_of(table: drumlin.Table) -> list[dict[str, Any]]:
    return table.read().to_arrow().to_pylist()
