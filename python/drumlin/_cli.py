"""The ``drumlin`` command."""

import signal
import sys

from drumlin import _drumlin


def main() -> int:
    """Runs the command line of this process. Returns its exit code."""
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


if __name__ == "__main__":
    sys.exit(main())
