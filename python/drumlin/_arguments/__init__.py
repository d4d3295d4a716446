"""What callers give, checked, in the form that the core takes: rows, schemas, filters, times, names.

An error here says which argument is wrong, what was expected and what came. Nothing here opens or changes a store; of a
table no more is asked than its order and its schema (``fit``).
"""
