"""Declares what each command of `agglab` takes on its command line. This module imports nothing
that a command needs to do its work, so that `--help` and wrong words are answered at once."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from agglab.testbed.base.paths import FIGURE_FOLDER
from p4native import SWITCH_SCRIPT

Declare = Callable[[argparse.ArgumentParser], None]
PACK_SUFFIX = ".agglab.zip"
FORMATS = ("csv", "parquet")
"""The formats of the table that `results` writes."""
CHART_FORMATS = ("svg", "pdf", "png")
CLOCKS = REAL, VIRTUAL = ("mininet", "virtual")
WITHIN = 0.1
DEVICE_ID_MAX = 2**64 - 1
WORKERS, PACKET_BYTES = (2, 4, 8), (576, 1500, 9000)
COMPARE_CODES = """exit codes:
  0  nothing differs by more than noise
  1  something differs by more than noise, or there are too few rounds to tell
  2  a folder holds no results, or they are damaged"""
REPEAT_CODES = """exit codes:
  0  every run agrees with the packed one
  1  a run does not agree, or was aborted
  2  the file is not a pack, is damaged, or needs --trust-code
  3  this machine lacks something; the message names it"""
GRADE_CODES = """exit codes:
  0  all points
  1  some points are missing
  2  the command line or the exercise is wrong
  3  this machine lacks something; the message names it"""
EXPORT = (
    "Write a scenario's network for p4-utils or p4lang's tutorials. Their formats cannot express"
    " everything that a scenario says; the command reports what it did not export."
)


def parse(name: str, declare: Declare, words: Sequence[str]) -> argparse.Namespace:
    """Returns the options of one command. words: the words after the command's name."""
    parser = argparse.ArgumentParser(prog=f"agglab {name}")
    declare(parser)
    return parser.parse_args(words)


def report(command: argparse.ArgumentParser) -> None:
    command.add_argument("folder", help="results/<scenario>/<run-id>")
    command.add_argument("--open", action="store_true", help="also open the page in a browser")
    command.add_argument(
        "--figure",
        type=Path,
        metavar="FILE",
        help="draw the section `figure` of this scenario file instead of the recorded one",
    )
    command.add_argument(
        "--format",
        action="append",
        choices=CHART_FORMATS,
        default=[],
        help="also write the charts as files of this format, beside their specifications (can be "
        "given several times)",
    )
    command.add_argument(
        "--chart",
        action="append",
        default=[],
        metavar="NAME",
        help="with --format: write only this chart, such as time or figure-0 (can be given several "
        "times)",
    )
    command.add_argument(
        "--fonts",
        type=Path,
        metavar="DIR",
        help="with --format: a folder with fonts that this system does not have",
    )


def check(command: argparse.ArgumentParser) -> None:
    _scenario(command, "print the problems as one JSON object on stdout")


def run(command: argparse.ArgumentParser) -> None:
    _scenario(command, "print metrics.json on stdout, and the summary for people on stderr")
    command.add_argument(
        "--results", default="results", metavar="DIR", help="the folder for results"
    )
    command.add_argument(
        "--resume",
        type=Path,
        metavar="DIR",
        help="continue the sweep in this result folder; finished points are kept",
    )
    command.add_argument(
        "--processes",
        type=_count,
        metavar="N",
        help="how many points of a sweep in virtual time to run at once (default: one per "
        "processor)",
    )

    command.add_argument(
        "--scheduler",
        metavar="tcp://HOST:PORT",
        help="let the workers of this Dask scheduler run the points of a sweep",
    )


def shell(command: argparse.ArgumentParser) -> None:
    _chosen_scenario(command)
    command.add_argument(
        "--commands",
        type=Path,
        metavar="FILE",
        help="carry out the commands in this file instead of asking for them",
    )


def exec_(command: argparse.ArgumentParser) -> None:
    command.add_argument("node", help="a host or switch of a run on real links, such as h1")
    command.add_argument(
        "--run",
        metavar="DIR",
        help="the result folder of the run, if several networks have such a node",
    )
    command.add_argument("program", nargs="+", metavar="COMMAND", help="the program, after `--`")


def _count(text: str) -> int:
    if not (text.isdecimal() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number greater than 0")
    return int(text)


def _scenario(command: argparse.ArgumentParser, in_json: str) -> None:
    _chosen_scenario(command)
    command.add_argument("--json", action="store_true", help=in_json)


def _chosen_scenario(command: argparse.ArgumentParser) -> None:
    command.add_argument("scenario", help="a name that `list` prints, or the path of a .yaml file")
    _settings(command)
    command.add_argument(
        "--folder",
        type=Path,
        metavar="DIR",
        help="the folder that relative paths in the scenario start from (default: the "
        "scenario's own folder)",
    )


def systems(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--measure",
        action="store_true",
        help="run each system on every workload that it supports, in virtual time, and print "
        "tables",
    )
    command.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="write the tables to this file, as in systems/README.md",
    )
    _settings(command)


def _settings(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="change one key, such as links.loss=1%% (can be given several times)",
    )


def compare(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Show what differs between two results, and whether the difference is more than noise."
    )
    command.epilog = COMPARE_CODES
    command.formatter_class = argparse.RawDescriptionHelpFormatter
    for name in ("a", "b"):
        command.add_argument(
            name, metavar=name.upper(), help="a result folder: results/<scenario>/<run-id>"
        )
    command.add_argument("--json", action="store_true", help="print the same as one JSON object")


def pack(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Write results, and everything that is needed to repeat them, as one file."
    )
    command.add_argument("folders", nargs="+", metavar="RUN", help="results/<scenario>/<run-id>")
    command.add_argument(
        "--out",
        metavar="FILE",
        help=f"the file to write (default: <scenario>-<run-id>{PACK_SUFFIX} of the first)",
    )
    command.add_argument(
        "--within",
        type=_share,
        default=WITHIN,
        metavar="SHARE",
        help="how much median times of real runs may differ and still agree (default: 10%%)",
    )


def _share(text: str) -> float:
    number = text.removesuffix("%")
    try:
        value = float(number) / (100 if number != text else 1)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a share such as 10% or 0.1")
    return value


def repeat(command: argparse.ArgumentParser) -> None:
    command.description = "Run the scenarios of a pack again, and say whether the results agree."
    command.epilog = REPEAT_CODES
    command.formatter_class = argparse.RawDescriptionHelpFormatter
    command.add_argument("pack", metavar="PACK", help="a file that `pack` wrote")
    command.add_argument(
        "--results", default="results", metavar="DIR", help="the folder for results"
    )
    command.add_argument(
        "--trust-code",
        action="store_true",
        help="run Python code that is in the pack: its author can then do everything that you "
        "can do",
    )


def results(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Write the numbers of all runs in these folders as one table with a row for each number."
    )
    command.add_argument(
        "folders", nargs="+", metavar="DIR", help="the results folder, or a folder in it"
    )
    command.add_argument(
        "--to", choices=FORMATS, help="the format (default: from FILE's name, else csv)"
    )
    command.add_argument(
        "--out", metavar="FILE", help="the file to write (default for csv: standard output)"
    )


def figures(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Run the figures from the literature and write a page of what they show. "
        "Each figure states a relation, and fails if the relation does not hold."
    )
    known = sorted(path.stem for path in FIGURE_FOLDER.glob("*.yaml"))
    command.add_argument(
        "names",
        nargs="*",
        metavar="FIGURE",
        help=f"one of {', '.join(known)} (default: all)",
    )
    clocks = "run on real links (mininet), in virtual time, or both (default: both)"
    command.add_argument("--clock", choices=(*CLOCKS, "both"), default="both", help=clocks)
    command.add_argument(
        "--long",
        action="store_true",
        help="use larger tensors and more rounds, which can take a night",
    )
    command.add_argument(
        "--draw",
        action="store_true",
        help="run nothing: write the page again from the latest results",
    )
    folder = "results/figures"
    command.add_argument(
        "--results",
        default=folder,
        metavar="DIR",
        help=f"the folder for results (default: {folder})",
    )


def calibrate(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Find the highest link rate at which runs stay network-bound on this machine, "
        "for each number of workers and packet size, and keep the table for `check`."
    )
    command.add_argument(
        "--workers",
        type=_numbers(1, 64),
        default=WORKERS,
        metavar="2,4,8",
        help="the numbers of workers to measure, separated by commas",
    )
    command.add_argument(
        "--packet-bytes",
        type=_numbers(576, 9000),
        default=PACKET_BYTES,
        metavar="576,1500,9000",
        help="the packet sizes to measure, separated by commas",
    )


def _numbers(least: int, most: int) -> Callable[[str], tuple[int, ...]]:
    def read(text: str) -> tuple[int, ...]:
        words = text.split(",")
        if not all(word.isdecimal() and least <= int(word) <= most for word in words):
            raise argparse.ArgumentTypeError(
                f"{text!r} is not a comma-separated list of whole numbers from {least} to {most}"
            )
        return tuple(int(word) for word in words)

    return read


def doctor(command: argparse.ArgumentParser) -> None:
    command.description = "Show what this machine has and what it lacks, and how to mend that."
    command.add_argument(
        "--json", action="store_true", help="print one JSON object instead of a table"
    )


def schema(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--out", type=Path, metavar="FILE", help="the file to write (default: standard output)"
    )


def dissector(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Write a Wireshark dissector (Lua) that shows what a P4 program's parser extracts from "
        "each frame. Use it with `wireshark -X lua_script:FILE` or `tshark -X lua_script:FILE`. "
        "Or write the program's headers as scapy layers (Python)."
    )
    command.add_argument(
        "program", help="a compiled program (.json), or a scenario, whose programs are compiled"
    )
    command.add_argument(
        *("-o", "--out"), type=Path, metavar="FILE", help="the file (default: standard output)"
    )
    command.add_argument(
        "--name",
        type=_protocol,
        help="the protocol's name in filters (default: the name of the .json file)",
    )
    command.add_argument(
        "--scapy", action="store_true", help="write scapy layers of one program instead"
    )
    _settings(command)


def trace(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Write what happened in a run as trace events, for Perfetto or Chrome's tracing: rounds, "
        "faults, metrics over time and, if the run has captures (switch.pcap: true), packets."
    )
    command.add_argument("folder", type=Path, help="results/<scenario>/<run-id>")
    command.add_argument(
        *("-o", "--out"),
        type=Path,
        metavar="FILE",
        help="the file (default: trace.json in the folder)",
    )
    for name, meaning in (("from", "the first moment"), ("to", "the end")):
        command.add_argument(
            f"--{name}",
            dest=f"{name}_ns",
            type=_moment,
            metavar="TIME",
            help=f"{meaning} of the part that is wanted, since the start of the run, such as 20ms",
        )
    command.add_argument(
        "--max-size",
        type=_megabytes,
        default=_megabytes("50MB"),
        metavar="SIZE",
        help="leave out packets from where on the file would be larger (default: 50MB)",
    )


def _moment(text: str) -> int:
    """Returns a time in ns."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(ns|us|ms|s)", text)
    if not match:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time such as 20ms")
    return round(float(match[1]) * {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}[match[2]])


def _megabytes(text: str) -> int:
    """Returns a number of bytes."""
    match = re.fullmatch(r"([1-9]\d*)MB", text)
    if not match:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size such as 50MB")
    return int(match[1]) * 10**6


def _protocol(text: str) -> str:
    if not re.fullmatch(r"[a-z][a-z0-9_]*", text):
        raise argparse.ArgumentTypeError(
            f"{text!r} must start with a letter and consist of lower-case letters, digits and '_'"
        )
    return text


def export(command: argparse.ArgumentParser) -> None:
    command.description = EXPORT
    command.add_argument("scenario", help="a name that `list` prints, or the path of a .yaml file")
    command.add_argument(
        "--to",
        choices=("p4app", "tutorial"),
        required=True,
        help="the format: p4app for p4-utils, tutorial for p4lang's tutorials",
    )
    command.add_argument(
        "--out",
        required=True,
        metavar="DIR",
        help="the folder to write to; it is created if it does not exist",
    )
    command.add_argument(
        "--switch",
        default=str(SWITCH_SCRIPT),
        metavar="PROGRAM",
        help="for p4app: the program that runs the switch; simple_switch is filled over Thrift "
        "(default: Agglab's own)",
    )
    _settings(command)
    command.add_argument(
        "--contender", default="", metavar="NAME", help="export this contender of a comparison"
    )


def fill(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Fill the tables of a running switch over P4Runtime, with the entries that `export` wrote, "
        "or with a runtime file of p4lang's tutorials."
    )
    command.add_argument("address", help="the switch's P4Runtime address, such as 127.0.0.1:9559")
    command.add_argument("device_id", type=_device_id, help="the switch's P4Runtime device id")
    command.add_argument(
        "runtime", type=Path, help="the file with the switch's entries, such as s1-runtime.json"
    )


def _device_id(text: str) -> int:
    if not (text.isascii() and text.isdecimal()) or int(text) > DEVICE_ID_MAX:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 to 2^64 - 1")
    return int(text)


def grade(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Grade what a student hands in for an exercise, in virtual time, and say what is wrong."
    )
    _grading(command)
    command.add_argument("program", metavar="PROGRAM", help="the file that is handed in")
    formats = command.add_mutually_exclusive_group()
    formats.add_argument("--json", action="store_true", help="print the grade as one JSON object")
    formats.add_argument("--junit", metavar="FILE", help="also write the grade as JUnit XML")
    formats.add_argument(
        "--gradescope", action="store_true", help="print the grade as Gradescope's results.json"
    )


def grade_all(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Grade all submissions for an exercise: the files in a folder, or the file of the "
        "exercise's name in each of its folders."
    )
    _grading(command)
    command.add_argument("folder", type=Path, metavar="FOLDER", help="the folder of submissions")
    command.add_argument("--csv", metavar="FILE", help="also write the table as CSV")
    command.add_argument(
        "--processes",
        type=_count,
        metavar="N",
        help="how many submissions to grade at once (default: one per processor)",
    )


def _grading(command: argparse.ArgumentParser) -> None:
    command.epilog = GRADE_CODES
    command.formatter_class = argparse.RawDescriptionHelpFormatter
    command.add_argument(
        "lab", metavar="LAB", help="the exercise: its folder, its name, or its number"
    )
    command.add_argument(
        "--trust",
        action="store_true",
        help="grade Python also where the kernel cannot shut it off from other files",
    )


def labs(command: argparse.ArgumentParser) -> None:
    command.description = "List the exercises and which are done, or work with one of them."
    actions = command.add_subparsers(dest="action", metavar="ACTION")
    hint = actions.add_parser("hint", help="show the hints of an exercise that are open")
    hint.add_argument(
        "lab", metavar="LAB", help="the exercise: its folder, its name, or its number"
    )
    hint.add_argument("--next", action="store_true", help="open the next hint")
    start = actions.add_parser("start", help="copy the skeleton of an exercise")
    start.add_argument("lab", metavar="LAB", help="the exercise: its name, or its number")
    start.add_argument(
        "folder", nargs="?", type=Path, default=Path(), metavar="DIR", help="default: this folder"
    )
    export = actions.add_parser("export", help="write the exercises to a folder, without solutions")
    export.add_argument("folder", type=Path, metavar="DIR", help="a folder that does not exist yet")
    export.add_argument(
        "--teacher", action="store_true", help="also write solutions and wrong programs"
    )
