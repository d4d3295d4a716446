"""Spark's classes for reading and writing; imported only if Spark is used."""

import base64
import json
import os
import pickle
from collections.abc import Iterator
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]
from pyspark import TaskContext  # type: ignore[import-not-found, unused-ignore]
from pyspark.sql import datasource  # type: ignore[import-not-found, unused-ignore]
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema  # type: ignore[import-not-found, unused-ignore]

from drumlin._errors import InvalidArgument

__all__ = ["DrumlinSparkSource", "given", "spark_schema"]

#: Each setting of a bucket is a separate option, so that Spark recognises secrets by their names and hides them.
_PREFIX = "storage_options."

#: Signed integers that can represent all values of unsigned ones, which Spark does not have.
_WIDER = {pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64(), pa.uint64(): pa.decimal128(20, 0)}


def spark_schema(schema: Any) -> Any:
    """A schema in Spark's types."""
    fields = []
    for field in pa.schema(schema):
        data_type = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if data_type == pa.string_view() or data_type == pa.large_string():
            data_type = pa.string()
        if data_type == pa.binary_view() or data_type == pa.large_binary():
            data_type = pa.binary()
        if pa.types.is_timestamp(data_type):
            data_type = pa.timestamp("us", data_type.tz)
        elif pa.types.is_date(data_type):
            data_type = pa.date32()
        elif data_type == pa.float16():
            data_type = pa.float32()
        fields.append(pa.field(field.name, _WIDER.get(data_type, data_type), field.nullable))
    try:
        return from_arrow_schema(pa.schema(fields))
    except Exception as error:
        raise InvalidArgument(
            f"Spark has no type for one of these columns: {error}; choose others by columns="
        ) from error


def given(options: dict[str, str]) -> dict[str, str]:
    """Settings of a bucket as Spark options."""
    return {_PREFIX + name: value for name, value in options.items()}


def _taken(options: Any) -> dict[str, str]:
    return {name[len(_PREFIX) :]: value for name, value in options.items() if name.startswith(_PREFIX)}


class DrumlinSparkSource(datasource.DataSource):  # type: ignore[misc, unused-ignore]
    """The data source through which drumlin.spark reads and writes."""

    @classmethod
    def name(cls) -> str:
        return "drumlin"

    def reader(self, schema: Any) -> Any:
        return _Reader(schema, self.options)

    def writer(self, schema: Any, overwrite: bool) -> Any:
        return _Writer(self.options)


class _Partition(datasource.InputPartition):  # type: ignore[misc, unused-ignore]
    """A split."""


class _Reader(datasource.DataSourceReader):  # type: ignore[misc, unused-ignore]
    # No filters are taken (pushFilters): Spark 4.3 reuses those of one query of a frame for the next, which would get
    # too few rows.

    def __init__(self, schema: Any, options: Any) -> None:
        self._schema = schema
        self._options = _taken(options)
        self._splits = [base64.b64decode(one) for one in json.loads(options["splits"])]

    def partitions(self) -> list[Any]:
        return [_Partition(one) for one in self._splits]

    def read(self, partition: Any) -> Iterator[Any]:
        target = to_arrow_schema(self._schema, timezone="UTC")
        split = pickle.loads(partition.value)
        for batch in split.batches(storage_options=self._options):
            table = pa.Table.from_batches([batch])
            columns = [_shown(table[field.name], field.type) for field in target]
            yield from pa.table(columns, schema=target).to_batches()


def _shown(column: Any, data_type: Any) -> Any:
    if column.type == data_type:
        return column
    # Nanoseconds beyond whole microseconds are lost, as everywhere in Spark.
    return column.cast(data_type, safe=not pa.types.is_timestamp(data_type))


class _Message(datasource.WriterCommitMessage):  # type: ignore[misc, unused-ignore]
    def __init__(self, tokens: list[bytes]) -> None:
        self.tokens = tokens


class _Writer(datasource.DataSourceArrowWriter):  # type: ignore[misc, unused-ignore]
    def __init__(self, options: Any) -> None:
        [ticket] = json.loads(options["ticket"])
        self._ticket, self._table = base64.b64decode(ticket), options["table"]
        self._options, self._answer = _taken(options), options["answer"]

    def write(self, iterator: Iterator[Any]) -> Any:
        from drumlin._clusters.jobs import stage

        tables = (pa.Table.from_batches([batch]) for batch in iterator)
        task = TaskContext.get().partitionId()
        return _Message(stage(pickle.loads(self._ticket), self._table, tables, task, self._options))

    def commit(self, messages: list[Any]) -> None:
        tokens = [base64.b64encode(token).decode() for message in messages for token in message.tokens]
        with open(self._answer + ".new", "w", encoding="ascii") as file:
            json.dump(tokens, file)
        os.replace(self._answer + ".new", self._answer)

    def abort(self, messages: list[Any]) -> None:
        """The driver ends the job."""
