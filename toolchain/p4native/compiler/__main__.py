"""Runs the compiler: `python -m p4native.compiler` does the same as `p4native-c`."""

import sys

from p4native.compiler.command import main

if __name__ == "__main__":
    sys.exit(main())
