"""Runs of a server at an executor that refuses one of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from mleredux.errors import ExecutorError
from mleredux.plugin.executor import Node
from mleredux_server.scheduler.remote import Remote
from mleredux_support.server_local import LocalServer


@pytest.fixture
def remote(tmp_path: Path) -> Iterator[Any]:
    local = LocalServer(tmp_path / "runs", executor="slurm")
    yield Remote(local.service, lambda: None)
    local.service.database.close()


def runs(*names: str) -> list[Any]:
    return [SimpleNamespace(id=name) for name in names]


def test_only_the_refused_run_is_tried_again(remote: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[str] = []

    def add(asked: list[Any]) -> None:
        names = [run.id for run in asked]
        if "bad" in names:
            raise ExecutorError("Memory specification can not be satisfied.")
        given.extend(names)

    monkeypatch.setattr(remote._remote_runs, "add", add)
    remote.executor = SimpleNamespace(id="toy", nodes=lambda: [Node("n1", 1, 1)])
    assert [run.id for run in remote._refused(runs("a", "bad", "b"))] == ["bad"]
    assert given == ["a", "b"]


def test_an_engine_that_does_not_respond_is_asked_once(remote: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def fail(*words: Any) -> None:
        asked.append(len(words))
        raise ExecutorError("It does not respond.")

    monkeypatch.setattr(remote._remote_runs, "add", fail)
    remote.executor = SimpleNamespace(id="toy", nodes=fail)
    assert len(remote._refused(runs("a", "b"))) == 2
    assert asked == [1, 0]
