"""The smoke run that an agent may have to pass before its first real one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mleredux import hookimpl
from mleredux.models import Cause, Smoke, State


@pytest.fixture
def asks_for_smoke(toy: Any, own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes an agent of the toy ask for a smoke run on the toy task."""

    def ask(name: str, **more: Any) -> str:
        agent = toy.catalogue.agent(name)
        changed = agent.model_copy(update={"smoke": Smoke(task="toy", **more)})
        toy.catalogue._objects["agents", name] = changed
        return name

    return ask


def smoked(toy: Any, run: Any) -> bool:
    return (run.logs_dir / "smoke" / "agent.log").is_file()


def test_an_agent_passes_once_and_is_not_asked_again(toy: Any, asks_for_smoke: Any) -> None:
    class Tracker:
        @hookimpl
        def mleredux_run_event(self, run: Any) -> None:
            tracked.add(run.path)

    tracked: set[Path] = set()
    toy.catalogue.manager.register(Tracker(), "tracker")
    name = asks_for_smoke("copy")
    first, second = toy.run(name), toy.run(name)
    assert (first.state, second.state) == (State.DONE, State.DONE)
    assert smoked(toy, first) and not smoked(toy, second)
    assert sorted(toy.store.ids()) == sorted([first.id, second.id]), "the smoke run is none of the user's runs"
    assert tracked == {first.path, second.path}
    newer = toy.catalogue.agent(name).model_copy(update={"version": "1+comment"})
    toy.catalogue._objects["agents", name] = newer
    assert smoked(toy, toy.run(name)) and not smoked(toy, toy.run(name)), "each version passes once"


def test_an_agent_that_hands_in_nothing_fails_before_its_real_run(toy: Any, asks_for_smoke: Any) -> None:
    run = toy.run(asks_for_smoke("idle"))
    assert (run.state, run.cause) == (State.FAILED, Cause.AGENT_CRASHED)
    assert "did not pass its smoke run on toy: submission.csv does not exist" in run.message
    assert not run.submissions() and smoked(toy, run)
    again = toy.run("idle")
    assert again.cause is Cause.AGENT_CRASHED, "what failed is not remembered as passed"


def test_the_next_start_ends_the_smoke_run_of_a_killed_program(toy: Any, until: Any) -> None:
    program = toy.start("toy", "--agent", "smoked", XDG_CACHE_HOME=str(toy.home / "cache"))
    until(lambda: any(b"ready" in log.read_bytes() for log in toy.store.path.glob("*/.smoke/*/logs/agent.log")))
    program.kill()
    program.wait()
    run = toy.only_run()
    assert run.state is State.BUILDING and toy.processes(run)
    assert toy.run("copy").state is State.DONE
    assert not toy.processes(run) and not (run.path / ".smoke").exists()
    assert str(toy.home) not in Path("/proc/self/mounts").read_text()
