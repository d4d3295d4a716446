"""What is shown without being asked for: bars of calls that take long, tables in notebooks, and the settings of both.

What prints itself (``repr``) does so where it is defined.
"""
