"""Runs the software switch by `python -m agglab.switch`, which does the same as `agglab-switch`."""

import sys

from agglab.switch.cli import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
