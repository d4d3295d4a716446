"""How DuckDB, Polars, DataFusion and pyarrow read data sets in this process: their filters as ours, our rows as theirs.

Each module imports its engine, so none is imported before it is used. Engines of many machines are in ``_clusters``.

An entrance has one dialect. An expression of pyarrow or Polars becomes a filter of ours only where both mean the same
in each of the three truth values. Where one does not, a filter that keeps at least its rows is pushed down if there is
one, and the engine, or pyarrow, applies the expression to what is read.

- DuckDB and DataFusion read a ``pyarrow.dataset.Dataset`` whose methods are ours (``arrow_dataset``). DuckDB gets
  other types of the same values, in ``schema`` and in ``scanner`` alike, recognised by the module that asks, and the
  number of rows. DataFusion is recognised by the schema that it hands to fragments; it compares floats by their total
  order.
- Polars reads through a source of its own (``lazy``).
"""
