"""What other systems have, brought into a store: a system a file, and what all of them share (``history``).

Each function tells what it brought by a report, compares it with what was there, and goes on after an interruption.
"""
