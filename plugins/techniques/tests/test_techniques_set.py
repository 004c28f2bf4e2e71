"""`techniques@TASK` is the set of all technique tasks on a task; what does not apply is named with the reason."""

from __future__ import annotations

import json
from typing import Any

import pytest
from mleredux.errors import NotFound
from mleredux.plugin.experiment import Request, resolved


def test_a_set_of_techniques_is_resolved_like_any_other(bench: Any) -> None:
    refused: dict[str, str] = {}
    names = bench.catalogue.task_names((), ("techniques@shop",), refused)
    every = {f"{name}@shop" for name in bench.catalogue.entries("techniques")}
    assert set(names) | set(refused) == every
    assert not set(names) & set(refused)
    assert "debugging does not apply to shop" in refused["debugging@shop"]
    request = Request.matrix(("cv@shop", "set:techniques@shop"), ("keen",), limits={})
    assert set(resolved(request, bench.catalogue).tasks) == set(names)
    planted = bench.catalogue.task_names((), ("techniques+planted-3@shop",))
    assert "debugging+planted-3@shop" in planted
    for wrong, said in (("techniques@nosuch", "There is no task 'nosuch'"), ("technique@shop", "There is no set")):
        with pytest.raises(NotFound, match=said):
            bench.catalogue.task_names((), (wrong,))


@pytest.mark.slow
def test_what_the_data_refuses_is_named_and_not_run(cli: Any, bench: Any) -> None:
    made = cli("prepare", "--set", "techniques@wine", "--json")
    assert made.returncode == 0, made.stderr
    ready = {row["task"] for row in json.loads(made.stdout)}
    ran = cli("run", "--set", "techniques@wine", "--agent", "analyst", "--sandbox", "process", "--json")
    assert ran.returncode == 0, ran.stderr
    rows = json.loads(ran.stdout)
    assert {row["task"] for row in rows} == ready
    assert all(row["report"]["valid_submission"] for row in rows)
    every = {f"{name}@wine" for name in bench.catalogue.entries("techniques")}
    assert "missing@wine" in every - ready
    for name in every - ready:
        for said in (made.stderr, ran.stderr):
            assert f"{name}: skipped. {name.partition('@')[0]} does not apply" in said
    explicit = cli("run", "missing@wine", "--agent", "analyst", "--sandbox", "process", "--json")
    assert explicit.returncode == 4  # named explicitly, it is an error
