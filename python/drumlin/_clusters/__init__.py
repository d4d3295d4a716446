"""What Ray, Dask, Daft and Spark need from a store, on their driver and on their workers.

Users call ``drumlin.ray`` and the modules next to it. Each file is imported only if its engine is used. Parts of data
sets and staged rows as such are in ``_processes``.
"""
