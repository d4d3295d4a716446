"""What is shown without being asked for: progress bars of long calls, tables in notebooks, and the settings of both.

Objects that print themselves (``repr``) do so where they are defined.
"""
