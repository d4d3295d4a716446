"""What calls give that reads rows when it is asked to: results, look-ups, differences, groups; and metrics.

Reports and plans are plain values of the core (``_drumlin/reports.pyi`` and its neighbours). What changes a store is
in ``_nouns``.
"""
