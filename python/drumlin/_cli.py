"""The ``drumlin`` command."""

import os
import signal
import sys

from drumlin import _drumlin


def main() -> int:
    """Runs the command line of this process. Returns its exit code."""
    if 1 in _fill_standard_streams():
        print("drumlin: standard output is closed, so nothing was done", file=sys.stderr)
        return 1
    if sys.argv[1:2] == ["migrate"]:
        # It needs Python packages, so it is not part of the compiled command line, which only lists it.
        from drumlin.migrate import command

        return command.main(sys.argv[2:])
    if sys.argv[1:2] == ["sql"]:
        from drumlin._shell import command as sql

        return sql.main(sys.argv[2:])
    # As in other commands, Ctrl-C ends it at once, except where a command handles it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _drumlin.main(["drumlin", *sys.argv[1:]])


def _fill_standard_streams() -> list[int]:
    """Puts the null device in the place of standard streams that are closed, since the next files that are opened, such
    as those of a store, would take their numbers, and get what is printed. Returns those that were closed."""
    closed = []
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
            closed.append(number)
    return closed


if __name__ == "__main__":
    sys.exit(main())
