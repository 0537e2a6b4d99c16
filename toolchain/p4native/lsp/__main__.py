"""Runs the language server: `python -m p4native.lsp` does the same as `p4native-lsp`."""

import sys

from p4native.lsp.command import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
