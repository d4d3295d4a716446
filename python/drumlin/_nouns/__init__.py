"""The nouns of the API, a file each: what users call, with its documentation. ARCHITECTURE.md has the table.

A method converts its arguments (``_arguments``) and calls the core; it holds no logic. What it returns is defined in
``_results`` or in the core.
"""
