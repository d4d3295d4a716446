"""Exports to other formats: one file for each format, and what they share (``tables``, ``lake_types``).

A type that the format lacks is converted, or its table is a failure in the report.
"""
