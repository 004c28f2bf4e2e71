"""What shows that an agent read what was held out."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from mleredux._core.data.installation import CANARY_FILE, canary
from mleredux._core.stages.ledger import exposures
from mleredux._core.stages.prepare import prepare
from mleredux._core.store import RunStore
from mleredux_grading import aggregate_reports


@pytest.fixture
def done(toy: Any) -> Any:
    """A finished run, and the task's private folder."""
    run = toy.run("copy")
    return run, prepare(toy.task(), toy.catalogue, toy.data).private


def sentences(run: Any, private: Path) -> list[str]:
    return [item.why for item in exposures(run, private)]


def test_an_honest_run_exposes_nothing(done: Any) -> None:
    run, private = done
    assert sentences(run, private) == []


def test_the_canary_lies_beside_the_answers_and_is_found_wherever_it_turns_up(done: Any) -> None:
    run, private = done
    text = (private.parent / CANARY_FILE).read_text()
    assert canary("toy") in text and canary("toy") != canary("digits")
    assert not [
        path for path in private.parent.joinpath("public").rglob("*") if canary("toy").encode() in path.read_bytes()
    ]
    (run.output_dir / "notes.bin").write_bytes(b"\0" + text.encode())
    run.agent_log.write_text(f"found: {text}")
    assert sentences(run, private) == [
        "output/notes.bin contains the canary stored next to the answers.",
        "logs/agent.log contains the canary stored next to the answers.",
    ]


def test_a_copy_of_the_answers_is_found_under_any_name(done: Any) -> None:
    run, private = done
    shutil.copyfile(private / "answers.csv", run.output_dir / "my_predictions.txt")
    assert sentences(run, private) == ["output/my_predictions.txt is identical to the private file answers.csv."]
    (run.path / "link").hardlink_to(private / "answers.csv")
    assert len(sentences(run, private)) == 1, "also if the answers themselves have another link"
    shutil.copyfile(private / "answers.csv", private.parent / "public" / "hint.csv")
    assert sentences(run, private) == [], "what is public too is no secret"


def test_perfect_predictions_of_an_isolated_agent_prove_nothing(done: Any) -> None:
    run, private = done
    shutil.copyfile(private / "answers.csv", run.output_dir / "submission.csv")
    for isolated, level in ((True, "suspicious"), (False, "seen")):
        [item] = exposures(run, private, isolated=isolated)
        assert (item.kind, item.level) == ("submitted-answers", level)
    shutil.copyfile(private / "answers.csv", run.output_dir / "seen.csv")
    levels = {item.kind: item.level for item in exposures(run, private, isolated=True)}
    assert levels == {"submitted-answers": "suspicious", "private-file": "seen"}, "but any other copy does"


def test_links_to_the_answers_are_not_followed(done: Any) -> None:
    run, private = done
    (run.output_dir / "link.csv").symlink_to(private / "answers.csv")
    (run.output_dir / "folder").symlink_to(private)
    assert sentences(run, private) == []


def test_the_report_says_so(toy: Any, tmp_path: Path) -> None:
    private = prepare(toy.task(), toy.catalogue, toy.data).private
    run = toy.run("steals", options={})
    assert run.report.ledger.answers_exposed and run.report.ledger.answers_seen
    assert "output/stolen.csv is identical to the private file answers.csv." in run.report.ledger.notes
    assert private.is_dir()


def test_a_tainted_run_has_no_medal_anywhere(toy: Any) -> None:
    run = toy.run("copies")
    verdict = run.report.verdict
    assert (verdict.status, verdict.trusted) == ("tainted", False) and "is identical to the private file" in verdict.why
    assert verdict.withheld["gold_medal"] and run.report.score == 1.0
    assert not (run.report.any_medal or run.report.medal or run.report.above_median or run.report.percentile)
    assert {score.medal for score in run.scores} == {None}
    [row] = RunStore(run.path.parent).rows()
    assert (row["medal"], row["verdict"]) == (None, "tainted")
    assert aggregate_reports([run.report])["total_medals"] == 0
    run.write_report(run.report.judged((), None))
    assert run.report.gold_medal and run.report.above_median and run.scores[-1].medal == "gold", "it is back"
