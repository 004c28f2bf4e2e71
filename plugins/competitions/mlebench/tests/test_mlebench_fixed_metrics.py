"""The variants `fixed` score as the contests said they would, on prepared golden cases."""

from __future__ import annotations

import math
import zipfile
from pathlib import Path

import mleredux_competition_mlebench
import numpy as np
import pandas as pd
import pytest
from mleredux._core.plugins import current
from mleredux._core.plugins.loader import resolve
from mleredux.errors import InvalidSubmission
from mleredux.models import Competition, GradingInput

pytestmark = pytest.mark.shared

REFS = {ref.id: ref for ref in mleredux_competition_mlebench.mleredux_register_tasks()}


class Variant:
    """A competition's variant `fixed`; submissions are tables, graded by it or by the published metric.

    The files are the published ones, because here only the metric matters.
    """

    def __init__(self, competition: str, shared: Path, folder: Path) -> None:
        self.published: Competition = resolve(REFS[competition])
        self.task: Competition = self.published.variants["fixed"](self.published)
        self.folder = folder
        with zipfile.ZipFile(shared / "golden" / competition / "raw.zip") as packed:
            packed.extractall(folder / "raw")
        assert self.published.prepare is not None
        self.published.prepare(folder / "raw", folder / "public", folder / "private")

    def table(self, path: str) -> pd.DataFrame:
        return pd.read_csv(self.folder / path, dtype=str, keep_default_na=False)

    def score(self, table: pd.DataFrame, *, published: bool = False) -> float:
        task = self.published if published else self.task
        submission = self.folder / "submission.csv"
        table.to_csv(submission, index=False)
        assert isinstance(task.metric.grader, str)
        grader = current().grader(task.metric.grader)
        result = grader.score(GradingInput(submission, self.folder / "private", task, task.metric.options))
        return result if isinstance(result, float) else result.value


@pytest.fixture
def variant(request: pytest.FixtureRequest, shared: Path, tmp_path: Path) -> Variant:
    return Variant(request.param, shared, tmp_path)


def of(*competitions: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("variant", competitions, indirect=True)


@of("plant-pathology-2021-fgvc8", "facebook-recruiting-iii-keyword-extraction")
def test_f1_is_the_mean_over_rows(variant: Variant) -> None:
    (target,) = variant.task.submission.target_columns
    answers = variant.table(f"private/{variant.task.answers}")
    one = answers[target].str.split().str[0]
    by_row = [2 / (1 + max(1, len(set(labels.split())))) for labels in answers[target]]
    assert min(by_row) < 1
    assert variant.score(answers.assign(**{target: one + " invented"})) < variant.score(answers.assign(**{target: one}))
    assert variant.score(answers.assign(**{target: one})) == pytest.approx(np.mean(by_row))
    assert variant.score(answers.assign(**{target: one}), published=True) != pytest.approx(np.mean(by_row))
    assert variant.score(answers) == 1
    for obfuscated in (False, True):
        assert "averaged over" in variant.task.describe(obfuscated=obfuscated)
        assert "micro" not in variant.task.describe(obfuscated=obfuscated).lower()


@of("champs-scalar-coupling")
def test_the_error_of_a_type_has_a_floor(variant: Variant) -> None:
    answers = variant.table(f"private/{variant.task.answers}")
    assert variant.score(answers) == pytest.approx(math.log(1e-9))
    assert variant.score(answers, published=True) == -math.inf
    assert "-20.7232" in variant.task.describe()


@of("tensorflow2-question-answering")
def test_rightly_blank_rows_are_no_hits(variant: Variant) -> None:
    gold = variant.table("private/gold_submission.csv")
    blank = gold.assign(PredictionString="")
    given = gold["PredictionString"] != ""
    assert 0 < given.sum() < len(gold)
    assert variant.score(gold) == 1
    assert variant.score(blank) == 0
    assert variant.score(blank, published=True) == pytest.approx(1 - given.mean())
    surplus = gold.assign(PredictionString=gold["PredictionString"].mask(~given, "0:1"))
    assert variant.score(surplus) == pytest.approx(2 * given.sum() / (given.sum() + len(gold)))
    for obfuscated in (False, True):
        assert "FP + FN" in variant.task.describe(obfuscated=obfuscated)


@of("aptos2019-blindness-detection", "learning-agency-lab-automated-essay-scoring-2")
def test_numbers_outside_the_scale_are_refused(variant: Variant) -> None:
    (target,) = variant.task.submission.target_columns
    answers = variant.table(f"private/{variant.task.answers}")
    assert variant.score(answers) == 1
    for stray in ("9", "-1"):
        table = answers.assign(**{target: [stray, *answers[target][1:]]})
        assert variant.score(table, published=True) < 1
        with pytest.raises(InvalidSubmission, match="row 1 is"):
            variant.score(table)
