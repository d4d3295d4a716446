"""What Ray, Dask, Daft and Spark need of a store, on their driver and on their workers.

``drumlin.ray`` and its neighbours are what users call. Each file is imported only where its engine is. Parts of data
sets and staged rows as such are in ``_processes``.
"""
