"""Runs the software switch: `python -m p4native.switch` does the same as `p4native-switch`."""

import sys

from p4native.switch.cli import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
