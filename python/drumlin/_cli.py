"""The ``drumlin`` command."""

import sys

from drumlin import _drumlin


def main() -> int:
    """Runs the command line of this process; returns its exit code."""
    return _drumlin.main(["drumlin", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
