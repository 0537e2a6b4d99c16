"""The language server: answers the requests of an editor, and sends it the compiler's messages.

Requests are answered at once, from the last analysis. Analyses run in a thread of their own, so
that they never delay what the user types.
"""

from __future__ import annotations

import gc
import os
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from p4native import VERSION
from p4native.compiler.preprocess import Options
from p4native.lsp import params as read
from p4native.lsp import rpc
from p4native.lsp.analysis import Analysis, analysed
from p4native.lsp.schedule import Schedule
from p4native.lsp.workspace import Workspace

CAPABILITIES = {
    "positionEncoding": "utf-16",
    "textDocumentSync": {"openClose": True, "change": 2, "save": True},
    "hoverProvider": True,
    "definitionProvider": True,
    "completionProvider": {"triggerCharacters": ["."]},
}


class Server:
    """One editor's server. send: takes each message for the editor, from any thread. log: takes a
    line or several about what went wrong."""

    def __init__(
        self,
        send: Callable[[dict[str, Any]], None],
        log: Callable[[str], None],
        options: Options | None = None,
    ) -> None:
        self.send = send
        self.log = log
        self.workspace = Workspace(options)
        self.schedule = Schedule()
        self.uris: dict[str, str] = {}
        self.published: dict[str, list[dict[str, Any]]] = {}
        self.initialized = False
        self.shut_down = False
        self.exited = False
        self.changed = threading.Condition()
        self.requests: Mapping[str, Callable[[Any], Any]] = {
            "initialize": self._initialize,
            "shutdown": self._shutdown,
            "textDocument/hover": self._hover,
            "textDocument/definition": self._definition,
            "textDocument/completion": self._completion,
        }
        self.notifications: Mapping[str, Callable[[Any], None]] = {
            "exit": self._exit,
            "textDocument/didOpen": self._opened,
            "textDocument/didChange": self._edited,
            "textDocument/didSave": self._saved,
            "textDocument/didClose": self._closed,
        }

    def start(self) -> None:
        """Starts the thread that analyses programs. It ends with the process."""
        threading.Thread(target=self._analyse_for_ever, daemon=True).start()

    # ---- messages

    def handle(self, message: Any) -> None:
        """Answers a message, whatever it may be."""
        if not isinstance(message, dict) or not isinstance(message.get("method"), str):
            if not isinstance(message, dict) or "method" in message or "id" not in message:
                self._fail(None, rpc.INVALID_REQUEST, "a message must have a method")
            return
        with self.changed:
            if "id" in message:
                self._answer(message["id"], message["method"], message.get("params"))
            else:
                self._notice(message["method"], message.get("params"))

    def malformed(self, problem: str) -> None:
        """Answers a message that could not be read."""
        self._fail(None, rpc.PARSE_ERROR, problem)

    def _answer(self, number: Any, method: str, given: Any) -> None:
        if self.shut_down:
            self._fail(number, rpc.INVALID_REQUEST, "the server was shut down")
        elif not self.initialized and method != "initialize":
            self._fail(number, rpc.NOT_INITIALIZED, "initialize comes first")
        elif method not in self.requests:
            self._fail(number, rpc.METHOD_NOT_FOUND, f"{method} is not supported")
        else:
            try:
                self.send({"id": number, "result": self.requests[method](given)})
            except read.InvalidParamsError as error:
                self._fail(number, rpc.INVALID_PARAMS, f"{method}: {error}")
            except Exception as error:
                self.log(traceback.format_exc())
                self._fail(number, rpc.INTERNAL_ERROR, f"{method}: {error!r}")

    def _notice(self, method: str, given: Any) -> None:
        if method not in self.notifications or not (self.initialized or method == "exit"):
            return
        try:
            self.notifications[method](given)
        except read.InvalidParamsError as error:
            self.log(f"{method}: {error}")
        except Exception:
            self.log(traceback.format_exc())

    def _fail(self, number: Any, code: int, problem: str) -> None:
        self.send({"id": number, "error": {"code": code, "message": problem}})

    # ---- requests

    def _initialize(self, given: Any) -> dict[str, Any]:
        try:
            root = read.path_at(given, "rootUri")
        except read.InvalidParamsError:
            root = os.getcwd()
        options = self.workspace.options
        folders = read.strings_at(given, "initializationOptions.includes")
        self.workspace.options = replace(
            options,
            includes=options.includes + tuple(os.path.join(root, each) for each in folders),
            defines=options.defines + read.strings_at(given, "initializationOptions.defines"),
        )
        self.initialized = True
        return {
            "capabilities": CAPABILITIES,
            "serverInfo": {"name": "p4native-lsp", "version": VERSION},
        }

    def _shutdown(self, given: Any) -> None:
        self.shut_down = True

    def _hover(self, given: Any) -> dict[str, Any] | None:
        path = read.path_at(given, "textDocument.uri")
        hover = self.workspace.hover(path, read.place_at(given, "position"))
        return None if hover is None else read.hover_of(hover)

    def _definition(self, given: Any) -> dict[str, Any] | None:
        path = read.path_at(given, "textDocument.uri")
        target = self.workspace.definition(path, read.place_at(given, "position"))
        if target is None:
            return None
        return {"uri": self._uri(target.path), "range": read.range_of(target.span)}

    def _completion(self, given: Any) -> dict[str, Any]:
        path = read.path_at(given, "textDocument.uri")
        offered = self.workspace.complete(path, read.place_at(given, "position"))
        return {"isIncomplete": False, "items": [read.completion_of(each) for each in offered]}

    # ---- notifications

    def _exit(self, given: Any) -> None:
        self.exited = True
        self.changed.notify_all()

    def _opened(self, given: Any) -> None:
        path = read.path_at(given, "textDocument.uri")
        text = read.value_at(given, "textDocument.text", str)
        self.uris[path] = read.value_at(given, "textDocument.uri", str)
        self._wait_for({self.workspace.open(path, text), *self.workspace.programs_with(path)})

    def _edited(self, given: Any) -> None:
        path = read.path_at(given, "textDocument.uri")
        changes = [read.change_of(each) for each in read.value_at(given, "contentChanges", list)]
        for span, text in changes:
            self.workspace.edit(path, span, text)
        self._wait_for(self.workspace.programs_with(path))

    def _saved(self, given: Any) -> None:
        self._wait_for(self.workspace.programs_with(read.path_at(given, "textDocument.uri")))

    def _closed(self, given: Any) -> None:
        path = read.path_at(given, "textDocument.uri")
        programs = self.workspace.programs_with(path)
        self.workspace.close(path)
        for program in programs - {*self.workspace.programs.values()}:
            self.schedule.forget(program)
        self._wait_for(programs & {*self.workspace.programs.values()})
        self._publish()
        self.uris.pop(path, None)

    # ---- analyses

    def _wait_for(self, programs: set[str]) -> None:
        for program in programs:
            self.schedule.changed(program, time.monotonic())
        self.changed.notify_all()

    def _analyse_for_ever(self) -> None:
        while not self.exited:
            with self.changed:
                program = self.schedule.take(time.monotonic())
                if program is None:
                    self.changed.wait(self.schedule.wait_s(time.monotonic()))
                    continue
                texts, options = dict(self.workspace.texts), self.workspace.options
            try:
                analysis = analysed(program, texts, options)
            except Exception:
                self.log(traceback.format_exc())
                continue
            self._enter(analysis)
            del analysis
            gc.collect()

    def _enter(self, analysis: Analysis) -> None:
        with self.changed:
            self.workspace.enter(analysis)
            self._publish()

    def _publish(self) -> None:
        """Sends the messages of each file for which they are not those sent last."""
        messages = self.workspace.messages()
        for path in [*messages, *(path for path in self.published if path not in messages)]:
            diagnostics = [read.diagnostic_of(each) for each in messages.get(path, [])]
            if diagnostics != self.published.get(path, []):
                given = {"uri": self._uri(path), "diagnostics": diagnostics}
                self.send({"method": "textDocument/publishDiagnostics", "params": given})
            self.published[path] = diagnostics
        self.published = {path: sent for path, sent in self.published.items() if sent}

    def _uri(self, path: str) -> str:
        return self.uris.get(path) or read.uri_of(path)
