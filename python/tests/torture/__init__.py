"""Torture: real processes work on real stores while they are killed, paused, starved and lied to.

Run ``python -m torture --help`` from ``python/tests``, or ``make torture``. Two kinds of trial (``crash`` and
``together``) derive everything from a seed, so a failure is run again by its seed.
"""
