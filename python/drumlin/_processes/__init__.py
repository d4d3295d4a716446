"""What connects a process with others, and its own end: addresses of stores, splits, tickets and tokens.

What is pickled here has no secrets, and can be read without the rest of the store. The engines that use it for their
jobs are in ``_clusters``.
"""
