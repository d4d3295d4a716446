"""Conversion of values to Arrow and back: those of Python, NumPy, Polars and JSON, and the names of columns.

Nothing here depends on stores or tables. pandas frames are in ``_pandas``, the checks of a call's arguments in
``_arguments``.
"""
