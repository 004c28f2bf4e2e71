"""`mleredux runs plot`: the score over time, in the terminal, as an image, as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result
from mleredux._core.cli.root import root
from mleredux_artifact_reports.charts import curve_of, progress_of, scale_of
from mleredux_artifact_reports.page import produce_report
from PIL import Image

from .conftest import report_of


def ask(run: Any, *arguments: str) -> Result:
    return CliRunner().invoke(root, ["runs", "--runs-dir", str(run.path.parent), "plot", *arguments])


def test_a_terminal_shows_a_plot(make_run: Any) -> None:
    said = ask(make_run(), "last")
    assert said.exit_code == 0, said.output
    assert "no-such-agent on no-such-task, seed 3" in said.output and "Seconds of agent run time" in said.output
    assert len(said.output.splitlines()) > 10 and "\x1b" not in said.output


def test_several_runs_in_one_plot_as_png_and_svg(make_run: Any, tmp_path: Path) -> None:
    first, second = make_run(), make_run(seed=4)
    said = ask(first, first.id, second.id, "-o", str(tmp_path / "c.png"), "-o", str(tmp_path / "c.svg"))
    assert said.exit_code == 0, said.output
    with Image.open(tmp_path / "c.png") as drawing:
        assert drawing.size == (1200, 675) and len(drawing.convert("RGB").getcolors(1 << 20) or ()) > 5
    assert (tmp_path / "c.svg").read_text().startswith("<?xml")
    both = ask(first, first.id, second.id).output
    assert "seed 3" in both and "seed 4" in both


def test_json_has_every_version(make_run: Any) -> None:
    run = make_run()
    (curve,) = json.loads(ask(run, "last", "--json").output)
    assert [(fact["number"], fact["score"], fact["seconds"]) for fact in curve["versions"]] == [
        (1, 0.9, 7.4),
        (2, 0.97222, 19.4),
    ]
    assert (curve["run"], curve["metric"], curve["is_lower_better"], curve["seconds"]) == (
        run.id,
        "accuracy",
        False,
        21.5,
    )


def test_what_can_not_be_plotted_is_reported(make_run: Any, tmp_path: Path) -> None:
    run = make_run(report=None)
    with pytest.raises(Exception, match="has no graded submission"):
        raise ask(run, "last").exception or click.ClickException("no error")
    graded = make_run()
    with pytest.raises(Exception, match="does not have a supported extension"):
        raise ask(graded, graded.id, "-o", str(tmp_path / "c.bmp")).exception or click.ClickException("no error")


def test_the_page_shows_the_score_of_each_version(make_run: Any) -> None:
    run = make_run()
    produce_report(run, ())
    page = (run.path / "report.html").read_text(encoding="utf-8")
    assert "accuracy of each version over the agent&#39;s run time" in page
    assert "Version 1 after 7.4 s: 0.9" in page and "not graded" not in page


def test_better_is_to_the_right_even_if_lower_is_better(make_run: Any) -> None:
    run = make_run()
    board = [0.1, 0.2, 0.3, 0.4, 0.5]
    lower = {"is_lower_better": True, "gold_threshold": 0.1, "silver_threshold": 0.2}
    lower |= {"bronze_threshold": 0.3, "median_threshold": 0.35, "score": 0.15}
    scale = scale_of(report_of(run, **lower), board)
    assert scale is not None and scale.beyond is None
    places = {mark.kind: mark.x for mark in scale.marks}
    assert places["median"] < places["bronze"] < places["silver"] < scale.score.x < places["gold"]
    assert len(scale.rug) == len(board)
    bare = dict.fromkeys(("gold_threshold", "silver_threshold", "bronze_threshold", "median_threshold"))
    assert scale_of(report_of(run, **bare), board) is not None
    assert scale_of(report_of(run, **bare), []) is None
    assert scale_of(report_of(run, score=-1e9), []).beyond == "left"  # type: ignore[union-attr]
    assert scale_of(report_of(run, score=1e9), []).beyond == "right"  # type: ignore[union-attr]


def test_the_best_so_far_never_gets_worse() -> None:
    values = [(1, 0.5, False, ""), (2, 0.4, False, ""), (3, None, True, ""), (4, 0.9, True, ""), (5, 0.7, False, "")]
    drawing = progress_of(values, lower_is_better=False)
    assert drawing is not None
    assert [point.kind for point in drawing.points] == ["tried", "tried", "buggy", "buggy", "tried"]
    heights = [y for _, y1, _, y2 in drawing.best for y in (y1, y2)]
    assert heights == sorted(heights, reverse=True)
    assert progress_of(values[:1], lower_is_better=False) is None


def test_a_bad_first_version_does_not_flatten_the_curve(make_run: Any) -> None:
    run = make_run()
    (fact, *_) = run.scores
    scores = [
        fact.model_copy(update={"number": n, "score": score, "seconds": n}) for n, score in enumerate([0.1, 0.95, 0.97])
    ]
    curve = curve_of(scores, 3.0, report_of(run), {2: 0.96})
    assert curve is not None
    below, second, own, third = curve.points
    assert (below.kind, second.kind, own.kind, third.kind) == ("below", "tried", "own", "tried")
    assert second.y - third.y > 20 and third.y < own.y < second.y
    assert {"gold", "silver", "bronze"} <= {level.kind for level in curve.levels}
    lower = curve_of(scores, 3.0, report_of(run, is_lower_better=True), {})
    assert lower is not None and lower.points[0].y < lower.points[1].y
