"""`pellucid`, the program: this package's own, beside its library."""

import os
import sys


def main() -> None:
    """Becomes the program: same process, same arguments."""
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pellucid")
    os.execv(program, ["pellucid", *sys.argv[1:]])


if __name__ == "__main__":
    main()
