"""`python -m agglab.switch`: the software switch as a program, as `agglab-switch` is."""

import sys

from agglab.switch.cli import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
