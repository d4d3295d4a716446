"""What a store has, taken to formats of others: a format a file, and what they share (``tables``, ``lake_types``).

What a format has no type for is refused, or said in the report.
"""
