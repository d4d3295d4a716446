"""A small Arrow array as JSON: strings as they are, others as an Arrow stream in base64."""

import base64
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]


def array_to_json(array: Any) -> Any:
    """An Arrow array as JSON."""
    if pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
        return {"texts": array.to_pylist(), "large": pa.types.is_large_string(array.type)}
    sink = pa.BufferOutputStream()
    table = pa.table({"values": array})
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return {"stream": base64.b64encode(sink.getvalue().to_pybytes()).decode()}


def array_from_json(made: Any) -> Any:
    """The array, as a chunked array."""
    if "texts" in made:
        array = pa.array(made["texts"], pa.large_string() if made["large"] else pa.string())
        return pa.chunked_array([array])
    return pa.ipc.open_stream(base64.b64decode(made["stream"])).read_all()["values"]
