"""Imports from other systems: one file for each system, and what they share (``history``).

Each function returns a report, checks what it wrote against the source, and continues after an interruption.
"""
