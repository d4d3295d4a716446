"""The ``drumlin`` command."""

import signal
import sys

from drumlin import _drumlin


def main() -> int:
    """Runs the command line of this process; returns its exit code."""
    if sys.argv[1:2] == ["migrate"]:
        # It needs packages of Python, so it is not part of the compiled command line, which only lists it.
        from drumlin.migrate import command

        return command.main(sys.argv[2:])
    # As in any command, Ctrl-C ends it at once, unless it says that it listens.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _drumlin.main(["drumlin", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
