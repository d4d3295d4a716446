"""Checks of arguments, and their conversion to the form that the core takes: rows, schemas, filters, times, names.

An error here says which argument is wrong, what was expected and what came. Nothing here opens or changes a store; of a
table, only its order and schema are read (``fit``).
"""
