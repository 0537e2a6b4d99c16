"""A real editor uses the server: Neovim's own client of the protocol."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import need
from lsp_session import PROGRAM

SCRIPT = Path(__file__).with_name("nvim_session.lua")
MISTAKE = PROGRAM.replace("meta.sum = before", "meta.sum = befor")


@need.mark(need.NEOVIM)
def test_neovim_shows_messages_types_and_names(tmp_path: Path) -> None:
    program, seen = tmp_path / "prog.p4", tmp_path / "seen.json"
    program.write_text(MISTAKE)
    environment = {
        **os.environ,
        "HOME": str(tmp_path),
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "LSP_SERVER": f"{sys.executable} -m p4native.lsp",
        "LSP_FILE": str(program),
        "LSP_SEEN": str(seen),
    }
    command = ["nvim", "--headless", "-u", "NONE", "-i", "NONE", "-n", "-S", str(SCRIPT)]
    done = subprocess.run(command, env=environment, capture_output=True, stdin=subprocess.DEVNULL)
    result = json.loads(seen.read_text()) if seen.exists() else {}
    assert "problem" not in result, (result, done.stderr)
    line = next(n for n, text in enumerate(MISTAKE.split("\n"), 1) if "= befor " in text)
    assert result == {
        "mistake": [f"{line}: 'befor' is not declared\nhint: did you mean 'before'?"],
        "hover": "```p4\nbit<32> before\n```\n\nIt has 32 bits (4 bytes).",
        "definition": "        bit<32> before;",
        "completion": ["ethernet", "chunks"],
    }
