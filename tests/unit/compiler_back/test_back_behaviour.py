"""What compiled programs do to packets, by our switch: random programs against their meaning."""

from __future__ import annotations

import contextlib
import json
import random
from pathlib import Path

import pytest
from back_program import json_of
from random_control import ControlGenerator, Exited, Returned
from random_program import MIX, Generator, encode, header_text, random_fields

from switch import Pipeline

PACKETS = 40


@pytest.mark.parametrize("seed", range(6))
def test_random_programs(seed: int, tmp_path: Path) -> None:
    generator = Generator(seed)
    code = generator.block(12, 3)
    document = json_of(fields=header_text(), top=MIX, apply=f"{code.text}\nstd.egress_spec = 3;")
    path = tmp_path / "prog.json"
    path.write_text(json.dumps(document))
    pipeline = Pipeline.load(path, seed=0)
    source = random.Random(seed)
    for _ in range(PACKETS):
        env = random_fields(source)
        frame = encode(env)
        code.run(env)
        ((port, out),) = pipeline.process(1, frame, 0)
        assert (port, out.hex()) == (3, encode(env).hex()), frame.hex()


@pytest.mark.parametrize("seed", range(6))
def test_random_control_flow(seed: int, tmp_path: Path) -> None:
    generator = ControlGenerator(seed)
    code = generator.block(8, 3)
    document = json_of(
        fields=header_text(),
        top=MIX + "\n".join(generator.sub_controls),
        locals="\n".join(generator.declarations),
        apply=f"std.egress_spec = 3;\n{code.text}",
    )
    path = tmp_path / "prog.json"
    path.write_text(json.dumps(document))
    pipeline = Pipeline.load(path, seed=0)
    source = random.Random(seed)
    for _ in range(PACKETS):
        env = random_fields(source)
        frame = encode(env)
        with contextlib.suppress(Returned, Exited):
            code.run(env)
        ((port, out),) = pipeline.process(1, frame, 0)
        assert (port, out.hex()) == (3, encode(env).hex()), frame.hex()
