"""A task through the bridge to the Model Context Protocol: the same score, never shown; errors as sentences."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import mleredux
import pytest
from mcp import Client, StdioServerParameters
from mleredux import Run

COPY = 'cp "$MLEREDUX_DATA_DIR/sample_submission.csv" submission.csv'
Call = Callable[..., Awaitable[Any]]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mcp")


def worked(home: Path, work: Callable[[Call, Client], Awaitable[None]], *options: str) -> Run:
    """The run of a client that starts `mleredux mcp` as a program, as clients do."""
    before = set((home / "runs").glob("2*"))
    places = ["--runs-dir", str(home / "runs"), "--data-dir", str(home / "data")]
    arguments = ["-m", "mleredux", "mcp", "wine", "--sandbox", "process", *places, *options]
    server = StdioServerParameters(command=sys.executable, args=arguments, env={**os.environ})

    async def connect() -> None:
        async with Client(server) as client:

            async def call(name: str, **given: Any) -> Any:
                answer = await client.call_tool(name, given)
                text = "".join(getattr(part, "text", "") for part in answer.content)
                return answer.structured_content if answer.structured_content is not None else (answer.is_error, text)

            await work(call, client)

    asyncio.run(connect())
    (path,) = set((home / "runs").glob("2*")) - before
    for _ in range(1200):  # a client kills its server soon after it has left
        if Run(path).state.final:
            break
        time.sleep(0.1)
    return Run(path)


def test_a_client_works_submits_and_gets_no_score(home: Path) -> None:
    said: list[Any] = []

    async def work(call: Call, client: Client) -> None:
        assert {tool.name for tool in (await client.list_tools()).tools} == {
            *("read_task", "run_command", "run_python", "validate", "submit", "time_left")
        }
        said.append(await call("read_task"))
        said.append(await call("run_python", code="print(6 * 7)"))
        said.append(await call("run_command", command="false"))
        said.append(await call("validate"))
        said.append(await call("run_command", command=COPY))
        assert 0 < (await call("time_left"))["seconds"] <= 3600
        said.append(await call("submit"))
        said.append(await call("run_command", command=COPY))

    run = worked(home, work)
    shown = str(said)
    assert "# Wine cultivars" in shown and "42" in str(said[1]) and "Exit code 1." in str(said[2])
    assert [said[3]["valid"], said[5]["valid"]] == [False, True]
    assert "has ended" in str(said[6])
    sample = home / "data" / "wine" / "prepared" / "public" / "sample_submission.csv"
    report, other = run.report, mleredux.grade(sample, "wine", data_dir=home / "data")
    assert report is not None and report.score is not None and other.score is not None
    assert abs(report.score - other.score) < 1e-12
    assert str(report.score) not in shown
    assert (run.spec.agent, str(run.state)) == ("mcp", "done")


def test_a_client_that_leaves_is_graded_by_what_it_left(home: Path) -> None:
    async def work(call: Call, _client: Client) -> None:
        await call("run_command", command="echo id > submission.csv")
        assert (await call("validate"))["valid"] is False

    report = worked(home, work).report
    assert report is not None and not report.valid_submission
    assert report.message


@pytest.mark.parametrize("left", [COPY, "true"], ids=["valid", "none"])
def test_a_client_whose_command_runs_into_the_limit_learns_that_its_work_was_graded(home: Path, left: str) -> None:
    said: list[Any] = []

    async def work(call: Call, _client: Client) -> None:
        await call("run_command", command=left)
        said.append(await call("run_command", command="sleep 60"))
        said.append(await call("validate"))

    run = worked(home, work, "--time-limit", "6s")
    assert run.report is not None and run.report.valid_submission == (left == COPY)
    verdict = "valid" if left == COPY else "invalid"
    for is_error, text in said:
        assert (
            is_error
            and f"has ended at its time limit, and the submission file was graded as it was: it is {verdict}" in text
        )
    assert str(run.report.score) not in str(said)
