"""A user's file that can't be read is one error, which names the file once and states the reason in words."""

from __future__ import annotations

import ast
import hashlib
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from mleredux._core.data.medals import read_leaderboard
from mleredux._core.submissions.documents import read_document
from mleredux.errors import InvalidSubmission, MlereduxError
from mleredux.models import first_problem
from mleredux.plugin.command import current
from mleredux_agent_repo.manifest import MANIFEST, read_manifest
from mleredux_agent_repo.scripts import _needed as script_requirements
from mleredux_audit_findings.study import Study
from mleredux_audit_floor.certify_command import _read as read_certificate
from mleredux_audit_leaks.truth import _read as read_answers
from mleredux_bridge_harbor.imported import read_config
from mleredux_bridge_harbor.publish import SUMS, problems
from mleredux_experiments.execution.plan import read_plan
from mleredux_gateway.config import load_config
from mleredux_gateway.prices import Prices
from mleredux_grading import read_jsonl
from mleredux_programs.execute import _read as read_inputs
from mleredux_rollout.judge import Judge
from pydantic import BaseModel, ValidationError

ROOT = Path(__file__).parents[1]
READERS: dict[str, Callable[[Path], Any]] = {
    "listed submissions": read_jsonl,
    "leaderboard": read_leaderboard,
    "plan of findings": Study,
    "gateway's configuration": lambda path: load_config({"MLEREDUX_GATEWAY_CONFIG": str(path)}),
    "price table": partial(Prices, None),
    "certificate": read_certificate,
    "prepared inputs": partial(read_inputs, public=True),
    "published folder": lambda path: list(problems(_as(path, SUMS))),
    "task of Harbor": lambda path: read_config(_as(path, "task.toml")),
}


def _as(path: Path, name: str) -> Path:
    """Give a file another name, if it exists; return its folder."""
    if path.exists():
        path.rename(path.with_name(name))
    return path.parent


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (lambda path: None, "No such file or directory"),
    "a folder": (Path.mkdir, "Is a directory"),
    "not UTF-8": (lambda path: path.write_bytes(b"\xff\xfe" * 9), "it is not UTF-8 text"),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("reader", READERS)
def test_an_unreadable_file_is_named_once_with_the_reason(tmp_path: Path, reader: str, damage: str) -> None:
    path, (make, reason) = tmp_path / "file.csv", DAMAGES[damage]
    make(path)
    with pytest.raises(MlereduxError) as error:
        READERS[reader](path)
    message = error.value.message
    assert reason in message or message.endswith("it is not JSON."), message
    assert not set(RAW) & set(message.split()) and "(char" not in message and "codec" not in message, message
    assert message.count(str(path)) <= 1 and message.count(path.name) == (path.name in message), message


@pytest.mark.parametrize("damage", ["missing", "a folder"])
def test_unreadable_answers_are_one_sentence(tmp_path: Path, damage: str) -> None:
    path, (make, reason) = tmp_path / "answers.csv", DAMAGES[damage]
    make(path)
    with pytest.raises(MlereduxError, match=rf"The answers of digits \(answers\.csv\) can't be read: {reason}\."):
        read_answers(current().task("digits"), path)


RAW = (
    "[Errno",
    "Errno",
    "Expecting",
    "JSONDecodeError",
    "UnicodeDecodeError",
    "KeyError",
    "NoneType",
    "'NoneType'",
    "unpack",
)
JSON: dict[str, Callable[[Path], Any]] = {
    "certificate": read_certificate,
    "price table": READERS["price table"],
    "published folder": lambda path: list(problems(_published(path))),
    "response of a judge": lambda path: _judge(path.read_bytes()),
}


def _published(path: Path) -> Path:
    """Let the checksums of a published folder agree with its damaged list of parts."""
    path.with_name(SUMS).write_text(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  parts.json\n")
    return _as(path, "parts.json")


def _judge(content: bytes) -> str:
    """Return what a judge makes of a gateway's response."""
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(content)}\r\nConnection: close\r\n\r\n".encode()
    with _responding(head + content) as url:
        return Judge("some-model", {"OPENAI_API_KEY": "key", "OPENAI_BASE_URL": url}).ask("Judge.", "text")


@contextmanager
def _responding(response: bytes) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def respond() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(response)

        thread = threading.Thread(target=respond)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/v1"
        thread.join()


@pytest.mark.attack
@pytest.mark.parametrize(
    "content", [b"", b"{", b"{} {}", b"[" * 100_000, b"\xff"], ids=["empty", "open", "two", "deep", "bytes"]
)
@pytest.mark.parametrize("reader", JSON)
def test_invalid_json_is_one_sentence_without_words_of_python(tmp_path: Path, reader: str, content: bytes) -> None:
    path = tmp_path / "file.json"
    path.write_bytes(content)
    with pytest.raises(MlereduxError) as error:
        JSON[reader](path)
    assert error.value.message.endswith(("it is not JSON.", "it is nested too deeply.", "it is not UTF-8 text."))


@pytest.mark.parametrize("content", [{}, {"choices": []}, {"choices": [None]}, {"choices": [{"message": 1}]}, None, 1])
def test_a_response_with_another_shape_is_one_sentence(content: object) -> None:
    with pytest.raises(MlereduxError, match="returned no valid response: a field is missing, or has a wrong type\\."):
        _judge(json.dumps(content).encode())


@pytest.mark.parametrize(
    ("response", "reason"),
    [(b"", "closed connection without response"), (b"nothing\r\n\r\n", "nothing")],
    ids=["none", "no HTTP"],
)
def test_a_gateway_that_breaks_off_is_one_sentence(response: bytes, reason: str) -> None:
    with _responding(response) as url, pytest.raises(MlereduxError) as error:
        Judge("some-model", {"OPENAI_API_KEY": "key", "OPENAI_BASE_URL": url}).ask("Judge.", "text")
    assert "Errno" not in error.value.message and error.value.message.startswith(
        "The judge some-model returned no valid response: "
    )


FOREIGN = {
    "OSError",
    "UnicodeDecodeError",
    "UnicodeError",
    "JSONDecodeError",
    "RecursionError",
    "KeyError",
    "IndexError",
}


def test_no_message_shows_an_exception_of_python_as_it_is() -> None:
    """Errors of files and documents go through `file_errors` or `file_fault`, which state the reason in words."""
    raw = []
    for path in sorted(path for part in ("core", "kits", "plugins") for path in (ROOT / part).glob("**/src/**/*.py")):
        if "analyst" in path.parts or "driver" in path.parts:  # programs in a sandbox, which can't import mleredux
            continue
        for handler in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(handler, ast.ExceptHandler) or handler.name is None or handler.type is None:
                continue
            kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
            if {ast.unparse(kind).rpartition(".")[2] for kind in kinds} & FOREIGN:
                raw += [
                    f"{path.relative_to(ROOT)}:{value.lineno}"
                    for statement in ast.walk(handler)
                    if isinstance(statement, ast.Raise) and statement.exc is not None
                    for value in ast.walk(statement.exc)
                    if isinstance(value, ast.FormattedValue) and ast.unparse(value.value) == handler.name
                ]
    assert raw == []


def _script(path: Path) -> None:
    header = path.read_text().splitlines()
    script = path.with_name("agent.py")
    script.write_text("\n".join(["# /// script", *(f"# {line}" for line in header), "# ///"]))
    script_requirements(script)


TOML: dict[str, Callable[[Path], Any]] = {
    "plan": lambda path: read_plan(path, current()),
    "plan of findings": Study,
    "gateway's configuration": READERS["gateway's configuration"],
    "manifest of a repository": lambda path: read_manifest(path.rename(path.with_name(MANIFEST)).parent),
    "task of Harbor": lambda path: read_config(path.rename(path.with_name("task.toml")).parent),
    "header of a script": _script,
}


@pytest.mark.attack
@pytest.mark.parametrize("content", ["a = " + "[" * 100_000, "a = [", "a = 1\na = 2"], ids=["deep", "open", "twice"])
@pytest.mark.parametrize("reader", TOML)
def test_invalid_toml_is_one_sentence_however_deep_it_is(tmp_path: Path, reader: str, content: str) -> None:
    path = tmp_path / "file.toml"
    path.write_text(content)
    with pytest.raises(MlereduxError) as error:
        TOML[reader](path)
    assert len(error.value.message) < 500 and "\n" not in error.value.message


class _Inner(BaseModel):
    size: int


class _Outer(BaseModel):
    inner: _Inner
    listed: list[_Inner] = []
    chosen: _Inner | None = None


@pytest.mark.parametrize(
    "value",
    [None, 1, "x", [], [1], {"inner": 1}, {"inner": {"size": 1}, "listed": [[]]}, {"inner": {"size": 1}, "chosen": 2}],
    ids=repr,
)
def test_no_message_about_a_document_names_a_class_of_the_program(tmp_path: Path, value: object) -> None:
    with pytest.raises(ValidationError) as error:
        _Outer.model_validate(value)
    assert first_problem(error.value).message == "Input should be a valid dictionary"
    path = tmp_path / "submission.json"
    path.write_text(json.dumps(value))
    with pytest.raises(InvalidSubmission) as refused:
        read_document(_Outer, path)
    assert "instance of" not in refused.value.message
    listed = tmp_path / "submission.jsonl"
    listed.write_text(json.dumps(value) + "\n")
    with pytest.raises(MlereduxError) as malformed:
        read_jsonl(listed)
    assert "instance of" not in malformed.value.message and "Listed" not in malformed.value.message
