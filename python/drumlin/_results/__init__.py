"""What calls return that reads rows on demand: results, look-ups, diffs and groups; and metrics.

Reports and plans are plain values of the core (``_drumlin/reports.pyi`` and the files next to it). What changes a store
is in ``_nouns``.
"""
