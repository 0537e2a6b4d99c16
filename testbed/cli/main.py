"""The command line. Every error that a user can cause is one line on stderr and a documented exit
code."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agglab.testbed.base import terminal
from agglab.testbed.base.command_lines import launcher
from agglab.testbed.base.errors import CompileError, MachineLacks
from agglab.testbed.base.exit_codes import FAILED, INVALID, LACKING, PASSED
from agglab.testbed.base.problems import ScenarioError, nearest, quote
from agglab.testbed.base.single_threaded_numpy import import_numpy
from agglab.testbed.cli import arguments
from p4native.common.printable import one_line, plain

EXIT_CODES = """exit codes:
  0  every expectation of the scenario holds
  1  an expectation does not hold, or the run was aborted
  2  the scenario, its P4 program or the command line is wrong
  3  this machine lacks something; the message names it
  130  interrupted"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code. No error shows a traceback."""
    return guarded(_dispatch, list(sys.argv[1:] if arguments is None else arguments))


def guarded(dispatch: Callable[[list[str]], int], words: list[str]) -> int:
    """Returns the exit code of `dispatch(words)`. An exception becomes one line on stderr and an
    exit code."""
    terminal.prepare()
    try:
        code = dispatch(words)
        sys.stdout.flush()
        return code
    except (ScenarioError, CompileError) as error:
        return _fail(INVALID, str(error))
    except MachineLacks as error:
        return _fail(LACKING, str(error))
    except BrokenPipeError:
        terminal.outlet(sys.stdout).flush()  # whoever read us has gone
        return FAILED
    except ModuleNotFoundError:
        raise  # __main__.py names it
    except Exception as error:
        if terminal.is_full(error):
            terminal.outlet(sys.stdout).flush()
            return _fail(FAILED, terminal.cannot_write(error, "the output"))
        return _fail(FAILED, _bug(error))


def _dispatch(words: list[str]) -> int:
    parser = _parser()
    name = words[0] if words and not words[0].startswith("-") else ""
    if name and name not in COMMANDS:
        parser.error(f"unknown command {quote(name)}{nearest(name, COMMANDS)}; {_known()}")
    options = parser.parse_args(words)
    command = COMMANDS[options.command]
    if command.computes:
        import_numpy()
    if command.main:
        return command.main(words[1:])
    assert command.run is not None
    return command.run(options)


def _known() -> str:
    return f"allowed: {', '.join(COMMANDS)}"


def _list(options: argparse.Namespace) -> int:
    """Prints names and descriptions without checking the scenarios, which takes seconds."""
    from agglab.testbed.schema.shipped_scenarios import description, names

    width = max((len(name) for name in names()), default=0)
    for name in names():
        try:
            about = description(name)
        except ValueError:
            about = f"(this file cannot be read; `{launcher()} check {name}` says why)"
        print(plain(f"{name:<{width}}  {about}"))
    return PASSED


def _systems(options: argparse.Namespace) -> int:
    """Prints what `system:` may name; a system of an installed package that cannot be loaded is
    reported as such."""
    if options.measure:
        from agglab.testbed.cli.survey import command

        with _interruptible():
            return command.main(options.set, options.out)
    from agglab.testbed import systems
    from agglab.testbed.scenario.describe import system_lines

    for name in systems.names():
        try:
            print(plain("\n".join(system_lines(systems.find(name)))))
        except systems.UnknownSystem as error:
            print(plain(f"{name}: this system cannot be used: {error}"))
    return PASSED


def _check(options: argparse.Namespace) -> int:
    from agglab.testbed.cli import check

    return check.run(options)


def _run(options: argparse.Namespace) -> int:
    """Runs the scenario."""
    from agglab.testbed.scenario import find, load

    suite = load(find(options.scenario), options.set, options.folder)
    from agglab.testbed.experiment.dask_points import Unusable
    from agglab.testbed.experiment.scenario_run import run
    from agglab.testbed.run.result_folder import ResultsError

    out, err = terminal.outlet(sys.stdout), terminal.outlet(sys.stderr)
    human, program = (err, out) if options.json else (out, None)
    try:
        with redirect_stdout(human), redirect_stderr(err), _interruptible():
            results, resume = Path(options.results), options.resume
            return run(
                suite,
                results,
                options.set,
                human,
                program,
                resume,
                options.processes,
                options.scheduler,
            )
    except ResultsError as error:
        return _fail(INVALID, f"cannot write results: {error}")
    except Unusable as error:
        return _fail(INVALID, str(error))


@contextmanager
def _interruptible() -> Iterator[None]:
    """Treats SIGTERM and SIGHUP like Ctrl-C: the run ends with a summary, and its folder says that
    it was interrupted. SIGHUP stays ignored if it was (nohup)."""
    others = [n for n in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) != signal.SIG_IGN]
    previous = {number: signal.signal(number, signal.default_int_handler) for number in others}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _clean(options: argparse.Namespace) -> int:
    from agglab.testbed.base.scratch import remove_stale

    removed = remove_stale()
    print(
        "\n".join(f"removed {what}" for what in removed) or "no killed run has left anything behind"
    )
    return PASSED


def _report(options: argparse.Namespace) -> int:
    from agglab.testbed.cli import report

    return report.main(options)


def _export(words: list[str]) -> int:
    from agglab.testbed.cli import export

    return export.main(words)


def _dissector(words: list[str]) -> int:
    from agglab.testbed.cli import dissector as command

    return command.main(words)


def _trace(words: list[str]) -> int:
    from agglab.testbed.cli import trace

    return trace.main(words)


def _fill(words: list[str]) -> int:
    from agglab.testbed.cli import fill

    return fill.main(words)


def _results(words: list[str]) -> int:
    from agglab.testbed.cli import results

    return results.main(words)


def _compare(words: list[str]) -> int:
    from agglab.testbed.cli.comparing import command

    return command.main(words)


def _pack(words: list[str]) -> int:
    from agglab.testbed.cli.packing import command

    return command.pack_main(words)


def _repeat(words: list[str]) -> int:
    from agglab.testbed.cli.packing import command
    from agglab.testbed.run.result_folder import ResultsError

    try:
        with _interruptible():
            return command.repeat_main(words)
    except ResultsError as error:
        return _fail(INVALID, f"cannot write results: {error}")


def _figures(words: list[str]) -> int:
    from agglab.testbed.cli.figures import command

    with _interruptible():
        return command.main(words)


def _calibrate(words: list[str]) -> int:
    from agglab.testbed.cli.calibration import command

    with _interruptible():
        return command.main(words)


def _schema(options: argparse.Namespace) -> int:
    """Prints the JSON Schema of scenarios, or writes it to a file."""
    import json

    from agglab.testbed.scenario.json_schema import schema

    return terminal.put(json.dumps(schema(), indent=1, ensure_ascii=False) + "\n", options.out)


def _doctor(words: list[str]) -> int:
    from agglab.testbed.cli import doctor

    return doctor.main(words)


def _grader(module: str) -> Callable[[list[str]], int]:
    """Returns the main function of a module of the grader, which is imported by its name and only
    when it is called: the testbed does not depend on the code that verifies it."""

    def main(words: list[str]) -> int:
        from importlib import import_module

        with _interruptible():
            return int(import_module(f"agglab.verification.grading.{module}").main(words))

    return main


def _shell(words: list[str]) -> int:
    from agglab.testbed.cli.shell import command

    with _interruptible():
        return command.main(words)


def _exec(words: list[str]) -> int:
    from agglab.testbed.cli.shell import exec_command

    return exec_command.main(words)


def _no_arguments(command: argparse.ArgumentParser) -> None:
    pass


@dataclass(frozen=True)
class Command:
    """A command of `agglab`. help: the command's line in `agglab --help`.

    arguments: a function that declares what the command takes. A command has either `main`, which
    is called with the words after the command's name, or `run`, which is called with their options.
    Both import the modules that do the work only when they are called. computes: whether the
    command uses NumPy, directly or through what it imports.
    """

    help: str
    main: Callable[[list[str]], int] | None = None
    run: Callable[[argparse.Namespace], int] | None = None
    arguments: arguments.Declare = _no_arguments
    computes: bool = True


COMMANDS: Mapping[str, Command] = {
    "list": Command("list the scenarios, one per line", run=_list, computes=False),
    "check": Command(
        "check that a scenario is valid, without running it",
        run=_check,
        arguments=arguments.check,
    ),
    "run": Command("run a scenario", run=_run, arguments=arguments.run),
    "shell": Command(
        "open a prompt on a scenario's network, in virtual time or on real links",
        main=_shell,
        arguments=arguments.shell,
    ),
    "exec": Command(
        "run a program at a host or switch of a run on real links that is going on",
        main=_exec,
        arguments=arguments.exec_,
        computes=False,
    ),
    "report": Command(
        "write the report of a result folder again", run=_report, arguments=arguments.report
    ),
    "compare": Command(
        "show what differs between two results, and whether it is more than noise",
        main=_compare,
        arguments=arguments.compare,
    ),
    "results": Command(
        "write the numbers of many runs as one table", main=_results, arguments=arguments.results
    ),
    "figures": Command(
        "run the figures from the literature and draw them",
        main=_figures,
        arguments=arguments.figures,
    ),
    "pack": Command(
        "write results as one file with which others can repeat the runs",
        main=_pack,
        arguments=arguments.pack,
    ),
    "repeat": Command(
        "run such a file again, and say whether the results agree",
        main=_repeat,
        arguments=arguments.repeat,
    ),
    "clean": Command("remove what killed runs have left behind", run=_clean, computes=False),
    "doctor": Command(
        "show what this machine has and what it lacks", main=_doctor, arguments=arguments.doctor
    ),
    "calibrate": Command(
        "find the highest link rate that this machine can carry, and save it for `check`",
        main=_calibrate,
        arguments=arguments.calibrate,
    ),
    "systems": Command(
        "list the systems and what each supports; with --measure, compare them",
        run=_systems,
        arguments=arguments.systems,
    ),
    "schema": Command(
        "write the JSON Schema of scenarios, with which editors complete and check keys",
        run=_schema,
        arguments=arguments.schema,
    ),
    "trace": Command(
        "write what happened in a run as trace events, for Perfetto",
        main=_trace,
        arguments=arguments.trace,
    ),
    "dissector": Command(
        "write a Wireshark dissector of a P4 program",
        main=_dissector,
        arguments=arguments.dissector,
    ),
    "export": Command(
        "export a scenario for p4-utils or for p4lang's tutorials",
        main=_export,
        arguments=arguments.export,
    ),
    "fill": Command(
        "fill a running switch's tables over P4Runtime", main=_fill, arguments=arguments.fill
    ),
    "labs": Command(
        "list the exercises of the course, or start, hint at or export them",
        main=_grader("labs_command"),
        arguments=arguments.labs,
    ),
    "grade": Command(
        "grade what a student hands in for an exercise",
        main=_grader("command"),
        arguments=arguments.grade,
    ),
    "grade-all": Command(
        "grade a folder of submissions for an exercise",
        main=_grader("class_command"),
        arguments=arguments.grade_all,
    ),
}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="agglab",
        description="Run experiments in in-network aggregation.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, command in COMMANDS.items():
        command.arguments(commands.add_parser(name, help=command.help))
    return parser


class _Version(argparse.Action):
    """Looks the version up only when it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        print(f"agglab {_version()}")
        parser.exit()


def _version() -> str:
    from importlib import metadata

    try:
        return metadata.version("agglab")
    except metadata.PackageNotFoundError:
        return "(version unknown: this checkout is not installed)"


def _fail(code: int, text: str) -> int:
    print(plain(text), file=sys.stderr)
    return code


def _bug(error: Exception) -> str:
    import tempfile
    import traceback

    with tempfile.NamedTemporaryFile(
        "w", prefix="agglab-", suffix=".log", delete=False, encoding="utf-8"
    ) as log:
        log.write(traceback.format_exc())
    return f"internal error: {one_line(repr(error), 200)}; the traceback is in {log.name}"
