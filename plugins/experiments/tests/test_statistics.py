"""The statistics equal the published figures, and the libraries that compute the same."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from mleredux._core.cli.root import root
from mleredux_experiments.execution.sequence import spent_alpha
from mleredux_experiments.inference import errors, power, resampling


def test_published_reports_give_the_published_means_and_errors(shared: Path) -> None:
    done = CliRunner().invoke(root, ["leaderboard", "--reports", str(shared / "reports"), "--json"])
    (row,) = json.loads(done.stdout)
    low = row["splits"]["low"]
    assert (row["runs"], low["any_medal"]["tasks"], row["complete"]) == (3, 22, False)
    figures = {name: (low[name]["mean"], low[name]["sem"]) for name in ("any_medal", "gold", "silver", "bronze")}
    assert figures == {
        "any_medal": pytest.approx((1900 / 22, 0), abs=1e-9),
        "gold": pytest.approx((43.93939393939394, 1.5151515151515156), abs=1e-9),
        "silver": pytest.approx((21.21212121212121, 3.0303030303030303), abs=1e-9),
        "bronze": pytest.approx((21.21212121212121, 1.5151515151515151), abs=1e-9),
    }
    # Nineteen of 22 in each of three runs: no spread over seeds, much over tasks.
    assert (low["any_medal"]["low"], low["any_medal"]["high"]) == pytest.approx((66.67, 95.25), abs=0.01)
    assert low["gold"]["se_tasks"] == pytest.approx(10.38, abs=0.01)
    assert row["splits"]["medium"] is None


def test_clustered_errors_equal_those_of_statsmodels() -> None:
    import statsmodels.api as sm

    rng = np.random.default_rng(5)
    groups = rng.integers(0, 9, 40)
    values = rng.random(40) + groups
    fitted = sm.OLS(values, np.ones(40)).fit(cov_type="cluster", cov_kwds={"groups": groups, "use_correction": False})
    assert errors.clustered_se(values, list(groups), corrected=False) == pytest.approx(fitted.bse[0], rel=1e-12)
    assert errors.clustered_se(values) == pytest.approx(values.std(ddof=1) / np.sqrt(40), rel=1e-12)


@pytest.mark.parametrize(("ours", "theirs"), [(errors.holm, "holm"), (errors.benjamini_hochberg, "fdr_bh")])
def test_adjusted_p_values_equal_those_of_statsmodels(ours: object, theirs: str) -> None:
    from statsmodels.stats.multitest import multipletests

    p = [0.01, 0.04, 0.03, 0.005, 0.04, 0.9, 1.0]
    assert callable(ours)
    assert ours(p) == pytest.approx(list(multipletests(p, method=theirs)[1]), rel=1e-12)


def test_sample_sizes_equal_the_published_one() -> None:
    """Miller 2024 (arXiv:2411.00640), section 5: 969 questions detect a difference of three points."""
    assert power.tasks_needed(0.03, power.Variance(1 / 9)) == 969
    assert power.tasks_needed(0.03, power.Variance(1 / 9, 1 / 6, 1 / 6), seeds=10) == 1260
    lite = power.Variance(0.06, 0.08, 0.08)
    assert power.detectable(lite, 22, 3) == pytest.approx(0.201, abs=0.001)
    assert power.detectable(lite, 22, 100) == pytest.approx(0.148, abs=0.001)
    assert power.seeds_needed(0.10, lite, 22) is None
    assert power.power_of(power.detectable(lite, 75, 3), lite, 75, 3) == pytest.approx(0.8, abs=1e-6)


def test_sign_flips_are_exact_where_they_can_be() -> None:
    values = np.array([0.3, -0.1, 0.4, 0.0, 0.2, 1 / 3])
    nonzero = values[values != 0]
    sums = [abs(np.dot(signs, nonzero)) for signs in itertools.product((1, -1), repeat=5)]
    expected = np.mean([one >= nonzero.sum() - 1e-9 for one in sums])
    assert resampling.sign_flip(values) == pytest.approx(expected)
    many = np.random.default_rng(1).normal(0.2, 1, 30)
    assert resampling.sign_flip(many, seed=0) == pytest.approx(resampling.sign_flip(many, seed=1), abs=0.01)
    assert resampling.sign_flip(np.zeros(9)) == 1


@pytest.mark.parametrize(("tasks", "experiments"), [(22, 150), (75, 40)])
def test_intervals_cover_and_tests_keep_their_level(tasks: int, experiments: int) -> None:
    """A small version of benchmarks/experiments.py: three standard errors around the nominal level."""
    rng = np.random.default_rng(tasks)
    covered = alarms = 0
    for number in range(experiments):
        ability = rng.normal(-0.5, 1.5, tasks)
        chances = [1 / (1 + np.exp(-(ability + rng.normal(0, 0.5, tasks)))) for _ in range(2)]
        a, b = ((rng.random((tasks, 3)) < chance[:, None]).astype(float) for chance in chances)
        found = resampling.two_level(list(a), list(b), seed=number)
        assert found is not None
        covered += found.low <= 0 <= found.high
        alarms += resampling.sign_flip((b - a).mean(axis=1), seed=number) <= 0.05
    slack = 3 * (0.05 * 0.95 / experiments) ** 0.5
    assert covered / experiments >= 0.95 - slack
    assert alarms / experiments <= 0.05 + slack


def test_looking_after_each_seed_keeps_the_level() -> None:
    """The sequential rule without a difference: nine tests of growing data err no more often than one may."""
    generator, experiments, alarms = np.random.default_rng(0), 120, 0
    for _ in range(experiments):
        chance = generator.beta(1, 1, (30, 1))
        a, b = ((generator.random((30, 10)) < chance).astype(float) for _ in range(2))
        looks = [
            resampling.sign_flip((b - a)[:, :k].mean(axis=1), draws=2_000) <= spent_alpha(0.05, k) for k in range(2, 11)
        ]
        alarms += any(looks)
    assert alarms <= 0.05 * experiments
    assert sum(spent_alpha(0.05, look) for look in range(1, 10_000)) <= 0.05
