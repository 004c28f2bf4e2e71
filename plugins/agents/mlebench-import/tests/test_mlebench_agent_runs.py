"""A folder in MLE-bench's agent layout, built and run in Docker to a graded submission."""

from __future__ import annotations

from pathlib import Path

import mleredux
import pytest
from mleredux._core.plugins.catalogue import set_current
from mleredux._core.store import Run

pytestmark = [pytest.mark.docker, pytest.mark.slow]

STEADY = Path(__file__).parent / "agents" / "steady"
TOKEN = "token-of-the-team-7731"


@pytest.fixture(scope="module")
def run(docker_engine: None, tmp_path_factory: pytest.TempPathFactory) -> Run:
    home = tmp_path_factory.mktemp("mlebench-agent")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(home))
        patch.setenv("TEAM_TOKEN", TOKEN)
        set_current(None)
        made = mleredux.run(
            "digits", f"mlebench:{STEADY}#steady/secretive", sandbox="docker", network="none", time_limit=300,
            options={"seed": 4}, limits={"memory_mb": 2048}, grants={"variables": ["TEAM_TOKEN"]},
            runs_dir=home / "runs", data_dir=home / "data",
        )  # fmt: skip
    set_current(None)
    return made


def log(run: Run) -> str:
    return run.agent_log.read_text(encoding="utf-8", errors="replace")


def test_it_is_graded(run: Run) -> None:
    assert str(run.state) == "done", f"{run.message}\n{log(run)}"
    assert run.report is not None and run.report.valid_submission
    assert run.report.score is not None and run.report.score > 0.9
    assert (run.output_dir / "code" / "solution.py").read_bytes() == (STEADY / "main.py").read_bytes()


def test_arguments_variables_and_the_time_are_as_in_mle_bench(run: Run) -> None:
    assert "arguments: --model.name forest --seed 4\n" in log(run)
    hidden = "*" * len(TOKEN)
    assert f'greeting: it\'s "steady"; time: 300; token: Bearer {hidden}; folder: /home/agent/workspace\n' in log(run)


def test_the_environment_agent_is_activated_and_run_in(run: Run) -> None:
    assert "trained with /opt/conda/envs/agent\n" in log(run)
    assert "run in /opt/conda/envs/agent\n" in log(run)


def test_the_script_and_the_endpoint_validate(run: Run) -> None:
    assert log(run).count('"result": "Submission is valid."') == 2


def test_it_may_edit_its_instructions(run: Run) -> None:
    instructions = (run.output_dir / "logs" / "full_instructions.txt").read_text(encoding="utf-8")
    assert "Be steady.\nThere are 300 seconds.\n" in instructions
    assert "# Instructions" in instructions and "Handwritten Digits" in instructions


def test_its_secret_is_in_nothing_that_is_kept(run: Run) -> None:
    kept = [path for path in run.path.rglob("*") if path.is_file() and not path.is_symlink()]
    assert len(kept) > 10
    assert not [path for path in kept if TOKEN.encode() in path.read_bytes()]
