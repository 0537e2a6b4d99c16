"""P4_16 for v1model: `p4native.compiler` makes BMv2 JSON and P4Info of a program, and
`p4native.switch` runs the JSON as native code. docs/interface.md lists the modules that other
projects may import; all others can change without notice."""

from pathlib import Path

VERSION = "0.1.0"
FOLDER = Path(__file__).resolve().parent
"""The folder of this package."""
SWITCH_SCRIPT = FOLDER / "switch/bin/p4native-switch"
"""Starts the switch by a path, for toolkits that start simple_switch_grpc."""
