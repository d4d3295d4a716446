"""How DuckDB, Polars, DataFusion and pyarrow read data sets in this process: translates their filters, and returns rows
in their types.

Each module imports its engine, so no engine is imported before it is used. Engines for many machines are in
``_clusters``.

A pyarrow or Polars expression becomes a Drumlin filter only if both have the same result in each of the three truth
values. If they do not, a filter that keeps at least the same rows is pushed down, if there is one, and the engine, or
pyarrow, applies the expression to what is read.

- DuckDB and DataFusion read a ``pyarrow.dataset.Dataset`` whose methods are ours (``arrow_dataset``). DuckDB gets other
  types of the same values, in ``schema`` and in ``scanner`` alike, and the number of rows; it is recognised by the
  module that asks. DataFusion is recognised by the schema that it passes to fragments; it compares floats by their
  total order.
- Polars reads through an I/O source (``lazy``).
"""
