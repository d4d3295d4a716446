"""How DuckDB, Polars, DataFusion and pyarrow read data sets in this process: their filters as ours, our rows as theirs.

Each module imports its engine, so none is imported before it is used. Engines of many machines are in ``_clusters``.
"""
