"""The protocol: what an editor sends and gets, and that nothing ends the server but `exit`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lsp_session import PROGRAM

from p4native.lsp import rpc
from p4native.lsp.server import Server
from p4native.verification.editor.client import Client

MISTAKE = PROGRAM.replace("meta.sum = before", "meta.sum = befor")
LINE = next(n for n, line in enumerate(MISTAKE.split("\n")) if "= befor " in line)


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with Client() as started:
        started.ask("initialize", {"capabilities": {}})
        started.tell("initialized", {})
        yield started
        assert started.close() == 0


def open_file(client: Client, path: Path, text: str) -> str:
    uri = path.as_uri()
    document = {"uri": uri, "languageId": "p4", "version": 1, "text": text}
    client.tell("textDocument/didOpen", {"textDocument": document})
    return uri


def change(client: Client, uri: str, *changes: dict[str, Any]) -> None:
    document = {"uri": uri, "version": 2}
    client.tell("textDocument/didChange", {"textDocument": document, "contentChanges": changes})


def at(line: int, first: int, last: int) -> dict[str, Any]:
    return {"start": {"line": line, "character": first}, "end": {"line": line, "character": last}}


def test_a_mistake_is_shown_and_goes_away(client: Client, tmp_path: Path) -> None:
    uri = open_file(client, tmp_path / "prog.p4", MISTAKE)
    client.until_shown(uri, bool)
    column = MISTAKE.split("\n")[LINE].index("befor ")
    (shown,) = client.diagnostics[uri]
    assert shown == {
        "range": at(LINE, column, column + 5),
        "severity": 1,
        "source": "p4native",
        "message": "'befor' is not declared\nhint: did you mean 'before'?",
    }
    comment = {"range": at(LINE, 0, 0), "text": "/* 🦆 */"}
    change(client, uri, comment, {"range": at(LINE, column + 8 + 5, column + 8 + 5), "text": "e"})
    client.until_shown(uri, lambda shown: not shown)
    client.tell("textDocument/didClose", {"textDocument": {"uri": uri}})


def test_closing_a_file_takes_its_messages_away(client: Client, tmp_path: Path) -> None:
    uri = open_file(client, tmp_path / "closed.p4", MISTAKE)
    client.until_shown(uri, bool)
    client.tell("textDocument/didClose", {"textDocument": {"uri": uri}})
    client.until_shown(uri, lambda shown: not shown)


def test_a_file_without_a_name_is_checked(client: Client) -> None:
    uri = "untitled:Untitled-1"
    client.tell("textDocument/didOpen", {"textDocument": {"uri": uri, "text": MISTAKE}})
    client.until_shown(uri, bool)
    assert client.diagnostics[uri][0]["range"]["start"]["line"] == LINE


def test_questions(client: Client, tmp_path: Path) -> None:
    uri = open_file(client, tmp_path / "asked.p4", PROGRAM)
    client.until_shown(uri, lambda shown: not shown)
    begin = PROGRAM.split("\n")[LINE].index("before")
    place = {"textDocument": {"uri": uri}, "position": {"line": LINE, "character": begin}}
    given = {"position": {"line": LINE, "character": begin - 6}}

    def answer(method: str, params: dict[str, Any]) -> Any:
        return client.ask(f"textDocument/{method}", params)["result"]

    client.until_shown(uri, lambda shown: not shown)
    while answer("hover", place) is None:  # until the first analysis is there
        pass
    hover = answer("hover", place)
    assert hover["contents"]["value"] == ("```p4\nbit<32> before\n```\n\nIt has 32 bits (4 bytes).")
    assert hover["range"] == at(LINE, begin, begin + 6)
    definition = answer("definition", place)
    assert definition == {"uri": uri, "range": at(LINE - 2, 16, 22)}
    labels = [each["label"] for each in answer("completion", {**place, **given})["items"]]
    assert labels == ["sum"]
    for method in ("hover", "definition"):
        assert answer(method, {**place, "position": {"line": 10**9, "character": 10**9}}) is None


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"Content-Length: 7\r\n\r\n{bogus}", rpc.PARSE_ERROR),
        (b"Content-Length: 9\r\n\r\n" + b"[" * 9, rpc.PARSE_ERROR),
        (b"Content-Length: 100000\r\n\r\n" + b"[" * 100000, rpc.PARSE_ERROR),
        (b"Content-Length: 2\r\n\r\n\xff\xfe", rpc.PARSE_ERROR),
        (b"Content-Length: 2\r\n\r\n[]", rpc.INVALID_REQUEST),
        (b"nonsense\r\n\r\nContent-Length: 4\r\nOther: x\r\n\r\nnull", rpc.INVALID_REQUEST),
        (b'content-length: 12\n\n{"method":1}', rpc.INVALID_REQUEST),
    ],
)
def test_what_is_no_message_is_answered(client: Client, data: bytes, code: int) -> None:
    client.write(data)
    answer = client.until(lambda message: message.get("id") is None and "error" in message)
    assert answer["error"]["code"] == code


def test_a_message_of_more_bytes_than_the_limit_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(rpc, "MAX_MESSAGE_BYTES", 100)
    path = tmp_path / "messages"
    path.write_bytes(b"Content-Length: 101\r\n\r\n" + b" " * 101 + rpc.framed({"method": "exit"}))
    with path.open("rb") as stream:
        with pytest.raises(rpc.MalformedError, match="at most 100"):
            rpc.read_message(stream)
        assert rpc.read_message(stream) == {"jsonrpc": "2.0", "method": "exit"}
        with pytest.raises(EOFError):
            rpc.read_message(stream)


def answers(*messages: Any) -> list[dict[str, Any]]:
    """What a server sends that gets these messages, and analyses nothing."""
    sent: list[dict[str, Any]] = []
    server = Server(sent.append, lambda line: None)
    for message in messages:
        server.handle(message)
    return sent


INITIALIZE = {"id": 1, "method": "initialize", "params": {}}


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ({"id": 2, "method": "textDocument/hover"}, rpc.INVALID_PARAMS),
        (
            {"id": 2, "method": "textDocument/hover", "params": {"textDocument": {"uri": 5}}},
            rpc.INVALID_PARAMS,
        ),
        (
            {
                "id": 2,
                "method": "textDocument/hover",
                "params": {
                    "textDocument": {"uri": "file:///a\0b"},
                    "position": {"line": 0, "character": 0},
                },
            },
            rpc.INVALID_PARAMS,
        ),
        (
            {
                "id": 2,
                "method": "textDocument/completion",
                "params": {
                    "textDocument": {"uri": "file:///a"},
                    "position": {"line": -1, "character": True},
                },
            },
            rpc.INVALID_PARAMS,
        ),
        ({"id": 2, "method": "textDocument/rename"}, rpc.METHOD_NOT_FOUND),
    ],
)
def test_a_wrong_request_is_answered_by_an_error(message: dict[str, Any], code: int) -> None:
    _, answer = answers(INITIALIZE, message)
    assert (answer["id"], answer["error"]["code"]) == (2, code)


def test_nothing_but_initialize_comes_first() -> None:
    (answer,) = answers({"id": 2, "method": "textDocument/hover", "params": {}})
    assert answer["error"]["code"] == rpc.NOT_INITIALIZED


def test_nothing_is_answered_after_shutdown() -> None:
    *_, answer = answers(INITIALIZE, {"id": 2, "method": "shutdown"}, {**INITIALIZE, "id": 3})
    assert answer["error"]["code"] == rpc.INVALID_REQUEST


KEYS = [
    *("textDocument", "uri", "position", "line", "character", "contentChanges", "text", "range"),
    *("start", "end", "initializationOptions", "includes", "rootUri"),
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(KEYS),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
METHODS = sorted({*Server(print, print).requests, *Server(print, print).notifications} - {"exit"})


@settings(max_examples=300)
@given(st.lists(st.tuples(st.sampled_from([*METHODS, "$/cancelRequest", "x"]), JSON), max_size=5))
def test_whatever_arrives_is_answered_once(messages: list[tuple[str, Any]]) -> None:
    requests = [
        {"id": number, "method": method, "params": params}
        for number, (method, params) in enumerate(messages)
    ]
    logged: list[str] = []
    sent: list[dict[str, Any]] = []
    server = Server(sent.append, logged.append)
    for message in [INITIALIZE, *requests]:
        server.handle(message)
        server.handle({key: value for key, value in message.items() if key != "id"})
    numbers = [message["id"] for message in sent if "id" in message]
    assert numbers == [1, *range(len(messages))]
    assert not [line for line in logged if "Traceback" in line]
    json.dumps(sent)


def test_the_options_of_the_editor_are_those_of_the_compiler(tmp_path: Path) -> None:
    (tmp_path / "library").mkdir()
    (tmp_path / "library/slots.p4").write_text("#define COUNT SLOTS\n")
    text = PROGRAM.replace("#define SLOTS 1024", "#include <slots.p4>").replace(
        "(SLOTS)", "(COUNT)"
    )
    options = {"includes": ["library"], "defines": ["SLOTS=16"]}
    with Client() as client:
        given = {"rootUri": tmp_path.as_uri(), "initializationOptions": options}
        client.ask("initialize", given)
        uri = open_file(client, tmp_path / "prog.p4", text + "mistake")
        client.until_shown(uri, bool)
        (shown,) = client.diagnostics[uri]
        assert shown["range"]["start"]["line"] == text.count("\n")


@pytest.mark.parametrize("data", [b"", b"Content-Length: 100\r\n\r\nabc"], ids=["nothing", "part"])
def test_the_server_ends_when_the_editor_does(data: bytes) -> None:
    command = [sys.executable, "-m", "p4native.lsp"]
    done = subprocess.run(command, input=data, capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (1, b"", b"")
