"""Values on their way into Arrow and out of it: of Python, NumPy, Polars and JSON, and the names of columns.

What is here knows nothing of stores and tables. Frames of pandas are in ``_pandas``, the checks of a call's arguments
in ``_arguments``.
"""
