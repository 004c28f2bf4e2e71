"""Retention rules: ended runs of an age are deleted, by project, unless they are pinned; and past use that decays."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import click.testing
import pytest
from mleredux._core.plugins import Catalogue
from mleredux_server.cli.server import command
from mleredux_server.database.tables import Job, RunRow, now
from mleredux_server.operations import retention
from mleredux_server.operations.retention import Expired, expired, read_rules, remove
from mleredux_server.runs.summary import run_at
from mleredux_server.scheduler.actions import delete_run
from mleredux_server.scheduler.decision import Demand, Waiting, World, decide
from mleredux_server.scheduler.history import History, decayed, forget_job
from mleredux_server.scheduler.startup import recover
from mleredux_support.server_local import LocalServer
from sqlalchemy import update

DAY = 86400.0


def ended(local: LocalServer, days: float, user: str = "admin", *, pinned: bool = False) -> str:
    """A run that ended some days ago."""
    run = local.make_run(user=user)
    local.settle(run.id, "done")
    with local.service.database.writing() as session:
        at = now() - timedelta(days=days)
        session.execute(update(Job).where(Job.id == run.id).values(ended_at=at))
        session.execute(update(RunRow).where(RunRow.id == run.id).values(pinned=pinned))
    return run.id


def test_old_runs_are_deleted_by_project_and_pinned_ones_kept(local: LocalServer) -> None:
    for name in ("ann", "bob"):
        local.user(name)
    old, new, kept = ended(local, 31), ended(local, 29), ended(local, 31, pinned=True)
    anns, bobs, running = ended(local, 8, "ann"), ended(local, 400, "bob"), local.make_run().id
    runs = str(local.service.settings.runs_dir)
    arguments = ["retention", "30d", "ann=7d", "bob=forever", "--runs-dir", runs, "--json"]
    ran = click.testing.CliRunner().invoke(command, [*arguments, "--dry-run"], obj=Catalogue())
    assert ran.exit_code == 0, ran.output
    told = json.loads(ran.output)
    assert told["dry_run"] and {row["id"]: row["project"] for row in told["runs"]} == {old: "admin", anns: "ann"}
    assert {old, new, kept, anns, bobs, running} <= set(local.service.store.ids())
    ran = click.testing.CliRunner().invoke(command, arguments, obj=Catalogue())
    assert ran.exit_code == 0, ran.output
    assert set(local.service.store.ids()) == {new, kept, bobs, running}
    assert remove(local.service, read_rules(["30d", "ann=7d", "bob=forever"])) == []


def test_what_changes_meanwhile_is_left_and_stops_nothing(local: LocalServer, monkeypatch: pytest.MonkeyPatch) -> None:
    pinned, old = ended(local, 32), ended(local, 31)
    gone = Expired("gone", "admin", now() - timedelta(days=33), 0)
    monkeypatch.setattr(retention, "expired", lambda *given: [gone, *expired(*given)])

    def pin(store: Any, run_id: str) -> Any:
        if run_id == pinned:
            with local.service.database.writing() as session:
                session.execute(update(RunRow).where(RunRow.id == pinned).values(pinned=True))
        return run_at(store, run_id)

    monkeypatch.setattr("mleredux_server.scheduler.actions.run_at", pin)
    removed = [one.id for one in remove(local.service, read_rules(["30d"]))]
    assert old in removed and "gone" not in removed
    assert pinned not in removed and pinned in local.service.store.ids()


@pytest.mark.parametrize("words", [["soon"], ["nobody=7d"]])
def test_rules_that_are_not_valid_delete_nothing(local: LocalServer, words: list[str]) -> None:
    arguments = ["retention", *words, "--runs-dir", str(local.service.settings.runs_dir)]
    assert click.testing.CliRunner().invoke(command, arguments, obj=Catalogue()).exit_code == 1


def test_past_use_counts_half_after_each_half_life() -> None:
    assert decayed(-100 * DAY, 0.0, 0.0, DAY) == pytest.approx(1.0)
    assert decayed(-100 * DAY, 0.0, DAY, DAY) == pytest.approx(0.5)
    assert decayed(-100 * DAY, 0.0, 2 * DAY, DAY) == pytest.approx(0.25)
    assert 0.5 * decayed(0.0, DAY, DAY, DAY) == pytest.approx(0.25)


def test_who_used_less_lately_goes_first(local: LocalServer) -> None:
    waiting = [Waiting("a", "ann", "p", Demand(1, 0, 0), 1.0), Waiting("b", "bob", "p", Demand(1, 0, 0), 2.0)]
    world = World(Demand(1, 0, 0), workers=1, now=10.0)
    assert decide(waiting, [], world).start == ["a"]
    assert decide(waiting, [], World(Demand(1, 0, 0), workers=1, now=10.0, history={"ann": 0.3})).start == ["b"]
    run = local.make_run(user="admin")
    with local.service.database.writing() as session:
        at = now()
        values = {"cpus": 2.0, "started_at": at - timedelta(days=1), "ended_at": at, "state": "ended"}
        session.execute(update(Job).where(Job.id == run.id).values(**values))
    shares = History(local.service.database, lambda: Demand(4, 0, 0), DAY).shares()
    assert shares[local.caller("admin").user_id] == pytest.approx(0.25, abs=0.02)
    assert History(local.service.database, lambda: Demand(4, 0, 0), 0.0).shares() == {}

    delete_run(local.service, None, run.id)
    assert History(local.service.database, lambda: Demand(4, 0, 0), DAY).shares() == shares, "it stays used"
    local.service.store.create(run.spec, run.spec.data_dir, run.id)
    recover(local.service)  # a run of this id that somebody puts back
    with local.service.database.writing() as session:
        assert session.get_one(Job, run.id).kind == "run"
        session.execute(update(Job).where(Job.id == run.id).values(**values, kind="used"))
        session.execute(update(Job).where(Job.id == run.id).values(ended_at=now() - timedelta(days=8)))
        forget_job(session, "another", DAY)
        assert session.get(Job, run.id) is None, "after seven half-lives it is forgotten"
