"""A night's run: everything that is random, with new seeds, for hours. See __main__.py."""
