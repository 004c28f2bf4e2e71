"""The notebook of the documentation runs as it is written; familiarity is correlated with performance."""

from __future__ import annotations

import json
from pathlib import Path

import mleredux
import pytest
from mleredux.errors import MlereduxError
from mleredux_experiments.analysis.familiarity import familiarity, read_table, recorded
from mleredux_experiments.results.table import Results, Row

NOTEBOOK = Path(__file__).parents[3] / "docs" / "how-to" / "experiments.ipynb"


def test_the_notebook_runs_and_shows_its_values() -> None:
    import nbformat
    from nbclient import NotebookClient

    book = nbformat.read(NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call]
    NotebookClient(book, timeout=300, kernel_name="python3").execute()
    kept = nbformat.read(NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call]
    for shown in ("".join(str(cell.get("outputs")) for cell in one.cells) for one in (book, kept)):
        assert "0 of 8 runs ended" in shown and "8 of 8 runs ended" in shown
        assert "blend wins 4 and loses 0 of 4 tasks" in shown and "blend wins 5 and loses 0 of 5 tasks" in shown
        assert "image/png" in shown and shown.count("text/html") == 5
        assert "sample {'valid': 4}" in shown.replace(
            "\\'", "'"
        )  # a script has nothing to search, so it does not end early
        assert "Extended by tasks diabetes." in shown


def test_without_the_distribution_one_sentence_tells_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mleredux._core.plugins.discovery.entry_points", lambda _group: [])
    with pytest.raises(MlereduxError, match="No installed package executes experiments"):
        mleredux.experiment("plan.toml")


def test_familiarity_is_related_by_rank_and_by_competition(tmp_path: Path) -> None:
    path = tmp_path / "known.csv"
    path.write_text("task,familiarity\n" + "".join(f"t{number},{-number}\n" for number in range(12)))
    rows = (
        Row(f"r{number}", "a", "a", f"t{number}+fixed", 0, valid=True, percentile=float(number)) for number in range(12)
    )
    found = familiarity(Results(tuple(rows)), "a", read_table(path), "percentile")
    assert (found.tasks, found.rho) == (12, pytest.approx(-1.0))
    assert "related" in found.sentence
    path.write_text("task,known\nt1,1\n")
    with pytest.raises(MlereduxError, match="is not a familiarity table"):
        read_table(path)


def test_recorded_log_probabilities_are_familiarity(tmp_path: Path) -> None:
    answers = (
        {"choices": [{"logprobs": {"content": [{"logprob": -1.0}, {"logprob": -2.0}]}}]},
        {"output": [{"content": [{"logprobs": [{"logprob": -3.0}]}]}]},
        {"choices": [{"logprobs": None}]},
    )
    (tmp_path / "r" / "llm").mkdir(parents=True)
    lines = "".join(json.dumps({"response": one}) + "\n" for one in answers)
    (tmp_path / "r" / "llm" / "calls.jsonl").write_text(lines + '{"logprob')
    rows = [Row("r", "a", "a", "wine", 0), Row("none", "a", "a", "digits", 0)]
    assert recorded(rows, tmp_path) == {"wine": -2.0}
