"""What leads from one process to others, and to its own end: addresses of stores, splits, tickets and tokens.

What is pickled here has no secrets, and is read where nothing else of the store is. The engines that use it for their
jobs are in ``_clusters``.
"""
