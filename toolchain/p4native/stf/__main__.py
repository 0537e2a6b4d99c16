"""Runs packet tests by `python -m p4native.stf`, which does the same as `p4native-stf`."""

import sys

from p4native.stf.command import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
