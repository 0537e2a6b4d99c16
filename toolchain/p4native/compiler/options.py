"""Reads the command line, which has the options of p4c-bm2-ss and `--show`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from p4native import VERSION
from p4native.compiler.diagnostics import MAX_ERRORS, Diagnostics
from p4native.compiler.preprocess import Options

MAX_ERROR_COUNT = 1_000_000
WARNING_KINDS = (
    "deprecated",
    "duplicate-priorities",
    "entries-out-of-priority-order",
    "ignore-prop",
    "invalid",
    "invalid-header",
    "mismatch",
    "ordering",
    "overflow",
    "parser-transition",
    "preprocessor",
    "shadow",
    "table-keys",
    "uninitialized-out-param",
    "uninitialized-use",
    "unreachable",
    "unsupported",
    "unused",
)
STAGES = ("preprocessed", "tokens", "ast", "types", "ir", "json")
WARNING_FLAGS = ("--Wdisable", "--Werror", "--Wwarn", "--Winfo")
# Flags that change nothing here: there is one way to unroll and inline, and no passes to choose.
WITHOUT_EFFECT = (
    "--doNotEmitIncludes",
    "--ndebug",
    "--loopsUnroll",
    "--parser-inline-opt",
    "--testJson",
)
# What belongs to the other compiler's own passes and files, with what does the same here.
REFUSED = {
    "--top4": "--show prints what each stage made",
    "--dump": "--show prints what each stage made",
    "--toJSON": "--show types prints the typed program",
    "--fromJSON": "compile the P4 source",
    "--pp": "--show ast prints the program as read",
    "--excludeFrontendPasses": "there are no passes to leave out",
    "--excludeMidendPasses": "there are no passes to leave out",
    "--listFrontendPasses": "--show names the stages",
    "--listMidendPasses": "--show names the stages",
    "--metrics": "there are no code metrics",
    "--p4runtime-entries-file": "entries are in the JSON",
    "--p4runtime-entries-files": "entries are in the JSON",
    "--disable-annotations": "remove the annotations from the program",
}
# Flags of the preprocessor that take no argument, and those that take one.
DEPENDENCY_FLAGS = ("-M", "-MD", "-MG", "-MP")
DEPENDENCY_OPTIONS = ("-MF", "-MT", "-MQ")
P4INFO_FORMATS = {
    "txtpb": "text",
    "txt": "text",
    "pbtxt": "text",
    "json": "json",
    "bin": "binary",
}
_EPILOG = """exit status: 0 on success, 1 on errors in the program or its files, 2 on a wrong
command line. Kinds of warnings, for --Wdisable and --Werror: """
_EPILOG += ", ".join(WARNING_KINDS)


@dataclass(frozen=True, slots=True)
class Request:
    """What a valid command line asks for."""

    program: str
    preprocessing: Options
    json_file: str | None
    p4info_files: tuple[tuple[str, str], ...]
    show: str | None
    max_errors: int = MAX_ERRORS
    emit_externs: bool = False


class UsageError(Exception):
    """Raised for an invalid command line. The message says why."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Ends the program with one line, without the list of flags that argparse writes before
        it."""
        self.exit(2, f"{self.prog}: error: {message} (--help lists the flags)\n")


def _error_count(text: str) -> int:
    if not (text.isascii() and text.isdecimal()) or not 1 <= int(text) <= MAX_ERROR_COUNT:
        problem = f"{text!r} is not a number of errors: allowed is 1 to {MAX_ERROR_COUNT}"
        raise argparse.ArgumentTypeError(problem)
    return int(text)


def build_parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="p4native-c",
        description="Compile P4_16 for v1model to BMv2 JSON and P4Info.",
        epilog=_EPILOG,
        allow_abbrev=False,
    )
    parser.add_argument("program", help="the P4 source file")
    parser.add_argument(
        "-o",
        metavar="FILE",
        dest="json_file",
        help="the BMv2 JSON file to write, or a folder, in which it gets the program's name",
    )
    parser.add_argument(
        "--p4runtime-files",
        metavar="FILES",
        default="",
        help="files for P4Info, separated by commas: .txtpb, .txt, .json or .bin",
    )
    parser.add_argument(
        "--p4runtime-file", metavar="FILE", help="a single P4Info file with any name"
    )
    parser.add_argument(
        "--p4runtime-format",
        choices=("binary", "json", "text"),
        default="binary",
        help="format of --p4runtime-file (default: binary)",
    )
    parser.add_argument(
        "-I",
        metavar="DIR",
        action="append",
        default=[],
        dest="includes",
        help="search DIR for included files",
    )
    parser.add_argument(
        "-D",
        metavar="NAME[=VALUE]",
        action="append",
        default=[],
        dest="defines",
        help="define a macro (VALUE: 1 by default)",
    )
    parser.add_argument(
        "-U", metavar="NAME", action="append", default=[], dest="undefines", help="undefine a macro"
    )
    parser.add_argument(
        "-E",
        action="store_true",
        dest="only_preprocess",
        help="only preprocess the source, and print it",
    )
    parser.add_argument(
        "--nocpp",
        action="store_true",
        help="do not preprocess the source, because it is preprocessed already",
    )
    _add_dependencies(parser)
    parser.add_argument("--show", choices=STAGES, help="print the output of a stage, and stop")
    parser.add_argument(
        "--emit-externs",
        action="store_true",
        help="accept the program's own externs, which modules loaded by BMv2 provide",
    )
    _add_language(parser)
    _add_warnings(parser)
    parser.add_argument("--version", action="version", version=f"p4native-c {VERSION}")
    return parser


def _add_dependencies(parser: argparse.ArgumentParser) -> None:
    """Adds the preprocessor's flags for make's rules, and those for its warnings."""
    for flag in DEPENDENCY_FLAGS:
        parser.add_argument(
            flag,
            action="append_const",
            const=flag,
            dest="dependencies",
            help="passed to the preprocessor",
        )
    for flag in DEPENDENCY_OPTIONS:
        parser.add_argument(flag, metavar="NAME", help="passed to the preprocessor")
    parser.add_argument(
        "-W",
        metavar="FLAG",
        action="append",
        default=[],
        dest="cpp_warnings",
        help="passed to the preprocessor",
    )


def _add_language(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--std",
        choices=("p4-16", "p4-14"),
        default="p4-16",
        help="version of P4; only p4-16 is supported",
    )
    parser.add_argument(
        "--p4v", choices=("16", "14"), default="16", help="version of P4; only 16 is supported"
    )
    parser.add_argument("--target", "-b", default="bmv2", help="only bmv2 is supported")
    parser.add_argument("--arch", "-a", default="v1model", help="only v1model is supported")
    for flag in WITHOUT_EFFECT:
        parser.add_argument(
            flag, action="store_true", help="accepted for compatibility, without effect"
        )
    parser.add_argument(
        "-O", metavar="LEVEL", default="", help="accepted for compatibility, without effect"
    )
    parser.add_argument("-T", metavar="LEVEL", help="accepted for compatibility, without effect")
    parser.add_argument(
        "-v", action="count", default=0, help="accepted for compatibility, without effect"
    )


def _add_warnings(parser: argparse.ArgumentParser) -> None:
    for name, help_ in (
        ("--Wdisable", "print no warnings, or none of this kind"),
        ("--Werror", "treat warnings, or those of this kind, as errors"),
        ("--Wwarn", "accepted, because warnings are always on"),
        ("--Winfo", "accepted for compatibility, without effect"),
    ):
        parser.add_argument(name, metavar="KIND", action="append", default=[], help=help_)
    parser.add_argument(
        "--maxErrorCount",
        type=_error_count,
        default=MAX_ERRORS,
        metavar="N",
        dest="max_errors",
        help=f"print at most this many errors (default: {MAX_ERRORS})",
    )


def complete(arguments: Sequence[str]) -> list[str]:
    """Returns the arguments with a value after each flag that may be given without one (`--Werror`
    means `--Werror=all`).

    Raises UsageError for flags that are not supported.
    """
    out: list[str] = []
    for index, argument in enumerate(arguments):
        if argument == "--":
            return [*out, *arguments[index:]]
        name = argument.partition("=")[0]
        if name in REFUSED:
            raise UsageError(f"{name} is not supported: {REFUSED[name]}")
        if argument in WARNING_FLAGS:
            argument += "=all"
        out.append("-O1" if argument == "-O" else argument)
    return out


def read(
    arguments: argparse.Namespace,
) -> Request:
    """Returns the request that parsed arguments make. Raises UsageError for what is not
    supported."""
    if arguments.std == "p4-14" or arguments.p4v == "14":
        raise UsageError("P4_14 is not supported; translate the program to P4_16")
    if arguments.target not in ("bmv2", "simple_switch"):
        raise UsageError(f"target {arguments.target} is not supported; bmv2 is")
    if arguments.arch != "v1model":
        raise UsageError(f"architecture {arguments.arch} is not supported; v1model is")
    preprocessing = Options(
        tuple(arguments.includes),
        tuple(arguments.defines),
        tuple(arguments.undefines),
        preprocessed=arguments.nocpp,
        flags=_preprocessor_flags(arguments),
    )
    only_preprocess = arguments.only_preprocess or "-M" in (arguments.dependencies or ())
    return Request(
        arguments.program,
        preprocessing,
        _json_file(arguments),
        _p4info_files(arguments),
        "preprocessed" if only_preprocess else arguments.show,
        arguments.max_errors,
        arguments.emit_externs,
    )


def _preprocessor_flags(arguments: argparse.Namespace) -> tuple[str, ...]:
    words = list(arguments.dependencies or ())
    for flag in DEPENDENCY_OPTIONS:
        value = getattr(arguments, flag[1:])
        words += [flag, value] if value is not None else []
    return (*words, *(f"-W{warning}" for warning in arguments.cpp_warnings))


def _json_file(arguments: argparse.Namespace) -> str | None:
    """Returns the file of `-o`. If `-o` names a folder, returns a file in it that is named after
    the program."""
    name: str | None = arguments.json_file
    if name is None or not (name.endswith("/") or Path(name).is_dir()):
        return name
    return str(Path(name) / f"{Path(arguments.program).stem}.json")


def _p4info_files(arguments: argparse.Namespace) -> tuple[tuple[str, str], ...]:
    """Returns (file, format) of every P4Info file that was requested."""
    found: list[tuple[str, str]] = []
    for name in filter(None, arguments.p4runtime_files.split(",")):
        suffix = name.rpartition(".")[2]
        if suffix not in P4INFO_FORMATS:
            known = ", ".join(f".{s}" for s in P4INFO_FORMATS)
            raise UsageError(f"--p4runtime-files: the name {name} ends in none of {known}")
        found.append((name, P4INFO_FORMATS[suffix]))
    if arguments.p4runtime_file:
        found.append((arguments.p4runtime_file, arguments.p4runtime_format))
    return tuple(found)


def diagnostics_for(arguments: argparse.Namespace) -> Diagnostics:
    """Returns an empty list of diagnostics that treats warnings as the command line says."""
    return Diagnostics(
        disabled={kind.replace("_", "-") for kind in arguments.Wdisable},
        promoted={kind.replace("_", "-") for kind in arguments.Werror} - {"all"},
        all_warnings_are_errors="all" in arguments.Werror,
    )
