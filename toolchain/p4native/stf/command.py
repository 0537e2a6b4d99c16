"""The command `stf`: compiles the program if needed, runs one script on our switch, and prints what
failed."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from p4native import VERSION, switch
from p4native.common.exit_codes import FAILED, INVALID, PASSED
from p4native.common.files import read_bytes
from p4native.common.printable import plain
from p4native.stf.engine import Library
from p4native.stf.formats import Format
from p4native.stf.frames import StfError
from p4native.stf.names import Binder
from p4native.stf.run import Run
from p4native.stf.script import parse, parse_formats


def run_stf(
    json_path: Path,
    script: Path,
    seed: int = 0,
    trace: bool = False,
    quick: bool = False,
    formats: Mapping[str, Format] = MappingProxyType({}),
) -> Run:
    """Runs `script` on the program in `json_path`. `failures` of the result is empty if everything
    in the script holds. trace: whether to print each packet's path. quick: as native_library has
    it. formats: those that the script may use beside its own."""
    commands = parse(read_bytes(script).decode(errors="replace"), formats)
    detail = switch.Detail.TRACE if trace else switch.Detail.NOTHING
    pipeline = switch.Pipeline.load(json_path, seed=seed, detail=detail, quick=quick)
    try:
        run = Run(Binder(json.loads(json_path.read_text())), Library(pipeline, trace))
        run.execute(commands)
        return run
    finally:
        pipeline.close()


def main(argv: Sequence[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    try:
        for path in (args.program, args.script):
            if not path.is_file():
                raise StfError(f"{path}: no such file")
        formats = _formats(args.formats)
        # a bad line is said before a compile
        parse(read_bytes(args.script).decode(errors="replace"), formats)
        with tempfile.TemporaryDirectory(prefix="p4native-stf-") as folder:
            program = _json_of(args, Path(folder))
            run = run_stf(program, args.script, args.seed, args.trace, True, formats)
    except StfError as error:
        where = f"{args.script}:{error.line}: " if error.line else ""
        print(plain(f"{where}error: {error}"), file=sys.stderr)
        return INVALID
    except (switch.ProgramError, switch.PipelineError) as error:
        print(f"{args.program}: error: {error}", file=sys.stderr)
        return INVALID
    for line in run.said:
        print(plain(f"{args.script}:{line}"))
    for failure in run.failures:
        print(plain(f"{args.script}:{failure}"))
    wanted = sum(map(len, run.expected.values()))
    verdict = f"FAILED, {len(run.failures)} of its checks" if run.failures else "ok"
    print(f"{args.script}: {verdict} ({run.packets} packets in, {wanted} expected)")
    return FAILED if run.failures else PASSED


def _formats(files: Sequence[Path]) -> dict[str, Format]:
    """Returns the formats of files. A message about one of them names the file."""
    formats: dict[str, Format] = {}
    for file in files:
        try:
            formats |= parse_formats(read_bytes(file).decode(errors="replace"))
        except StfError as error:
            raise StfError(f"{file}:{error.line}: {error}") from None
        except OSError as error:
            raise StfError(f"{file}: {error.strerror or error}") from None
    return formats


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="p4native-stf",
        description="Run one STF packet test on the switch library.",
    )
    parser.add_argument(
        "program", type=Path, metavar="PROG.p4|PROG.json", help="the program, as source or compiled"
    )
    parser.add_argument("script", type=Path, metavar="TEST.stf", help="the packet test")
    parser.add_argument(
        "-I",
        dest="include",
        action="append",
        default=[],
        metavar="DIR",
        help="search DIR for included files",
    )
    parser.add_argument(
        "-D",
        dest="define",
        action="append",
        default=[],
        metavar="NAME[=VALUE]",
        help="define a macro",
    )
    parser.add_argument(
        "--formats",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="read formats of packets for the script from FILE",
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="seed of the program's random() (default: 0)"
    )
    parser.add_argument(
        "--trace", action="store_true", help="print the path of each packet through the program"
    )
    parser.add_argument("--version", action="version", version=f"p4native-stf {VERSION}")
    return parser


def _json_of(args: argparse.Namespace, folder: Path) -> Path:
    """Returns the given program if it is BMv2 JSON, otherwise our compiler's output for it."""
    program: Path = args.program
    if program.suffix == ".json":
        return program
    out = folder / (program.stem + ".json")
    flags = [f"-I{d}" for d in args.include] + [f"-D{d}" for d in args.define]
    command = [sys.executable, "-m", "p4native.compiler", str(program), *flags, "-o", str(out)]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise StfError(f"{program} does not compile\n{done.stderr.rstrip()}")
    return out
