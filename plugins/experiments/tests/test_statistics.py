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
from mleredux_experiments.inference.power import Sample, Variance
from mleredux_experiments.inference.resampling import Evidence, Scale


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
    assert (low["any_medal"]["low"], low["any_medal"]["high"]) == pytest.approx((65.09, 97.09), abs=0.4)
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
    """Miller 2024 (arXiv:2411.00640), section 5: 969 and 1,260 questions, of the normal approximation."""
    assert power.Sample(power.Variance(1 / 9), 22, 1).tasks_for(0.03) == pytest.approx(969, abs=2)
    assert power.Sample(power.Variance(1 / 9, 1 / 6, 1 / 6), 22, 10).tasks_for(0.03) == pytest.approx(1260, abs=2)
    lite = power.Sample(power.Variance(0.06, 0.08, 0.08), 75, 3)
    assert lite.seeds_for(0.08) is None and power.Sample(lite.variance, 22, 3).seeds_for(0.10) is None
    assert lite.detectable is not None and lite.chance(lite.detectable) == pytest.approx(0.8, abs=0.01)


def flips(differences: np.ndarray) -> float:
    """The sign-flip test from its definition."""
    signs = np.array(list(itertools.product((1, -1), repeat=len(differences))))
    return float(np.mean(np.abs(signs @ differences) >= abs(differences.sum()) - 1e-9))


@pytest.mark.parametrize(("tasks", "seeds", "share"), [(6, 3, False), (10, 1, False), (8, 1, True), (10, 3, True)])
def test_power_is_that_of_the_test_that_decides(tasks: int, seeds: int, share: bool) -> None:
    """By drawing experiments and testing each; the chances of medals are of beta distributions."""
    rng, delta, experiments = np.random.default_rng(tasks), 0.5, 400
    chances = [rng.beta(3 * mean, 3 - 3 * mean, 100_000) for mean in (0.5 - delta / 2, 0.5 + delta / 2)]
    variance = power.Variance(float(np.var(chances[1] - chances[0])), *(float(np.mean(p * (1 - p))) for p in chances))
    sample = power.Sample(variance, tasks, seeds, reach=1.0, share=share)
    found = 0
    for _ in range(experiments):
        if share:
            a, b = (rng.binomial(seeds, rng.choice(p, tasks)) / seeds for p in chances)
            differences = b - a
        else:
            differences = rng.normal(delta, np.sqrt(variance.of_mean(seeds)), tasks)
        found += flips(differences) <= 0.05
    assert sample.chance(delta) == pytest.approx(found / experiments, abs=0.075)  # three standard errors


def test_too_few_tasks_detect_nothing() -> None:
    assert [power.least_tasks(alpha) for alpha in (0.5, 0.05, 0.01, 0.05 / 3)] == [2, 6, 8, 7]
    for share in (False, True):
        few = power.Sample(power.Variance(1.0, 1.0, 1.0), 5, 3, reach=100.0, share=share)
        assert few.detectable is None and few.chance(100) == 0 and few.seeds_for(100) is None


def test_sign_flips_are_exact_where_they_can_be() -> None:
    values = np.array([0.3, -0.1, 0.4, 0.0, 0.2, 1 / 3])
    nonzero = values[values != 0]
    sums = [abs(np.dot(signs, nonzero)) for signs in itertools.product((1, -1), repeat=5)]
    expected = np.mean([one >= nonzero.sum() - 1e-9 for one in sums])
    assert resampling.sign_flip(values) == pytest.approx(expected)
    rng = np.random.default_rng(1)
    many = rng.normal(0.2, 1, 30)
    drawn = rng.choice((-1.0, 1.0), size=(50_000, 30)) @ many
    assert resampling.sign_flip(many) == pytest.approx(np.mean(np.abs(drawn) >= abs(many.sum())), abs=0.01)
    assert resampling.sign_flip(np.zeros(9)) == 1


@pytest.mark.parametrize(("successes", "count"), [(19, 22), (0, 5), (3, 3), (4, 10)])
def test_limits_of_shares_are_those_of_clopper_and_pearson(successes: int, count: int) -> None:
    from scipy.stats import binomtest

    values = np.array([1.0] * successes + [0.0] * (count - successes))
    low, high = errors.bounded_limits(values, (0.0, 1.0))
    expected = binomtest(successes, count).proportion_ci()
    assert (float(low), float(high)) == pytest.approx((expected.low, expected.high), abs=0.005)


@pytest.mark.parametrize("share", [False, True])
def test_intervals_and_p_values_never_contradict_each_other(share: bool) -> None:
    rng = np.random.default_rng(3)
    for count in (2, 3, 4, 6, 9, 22, 40):
        for _ in range(40):
            values = rng.normal(rng.normal(), 1, count)
            values = 100 * np.sign(np.round(values)) if share else values
            p, alpha = resampling.sign_flip(values), float(rng.choice([0.05, 0.02, 0.3]))
            if count < 10:
                assert p == pytest.approx(flips(values))
            found = resampling.paired_interval(values, resampling.Scale(100.0, share), alpha)
            assert found is not None and found.level <= 1 - alpha + 1e-12
            assert (found.low > 0 or found.high < 0) == (p <= 1 - found.level + 1e-9)
            assert found.low < found.high or not share
    assert resampling.paired_interval(np.array([10.0, 20, 15, 12]), resampling.Scale(), 0.05) == (10, 20, 0.875)
    assert resampling.paired_interval(np.array([10.0]), resampling.Scale(), 0.05) is None
    alike = resampling.paired_interval(np.array([-100.0, -100, -100]), resampling.Scale(100.0), 0.05)
    assert alike is not None and alike.low == -100 and alike.high > 0, "three tasks decide nothing"


def test_looking_after_each_seed_keeps_the_level() -> None:
    """The sequential rule without a difference: nine tests of growing data err no more often than one may."""
    generator, experiments, alarms = np.random.default_rng(0), 120, 0
    for _ in range(experiments):
        chance = generator.beta(1, 1, (30, 1))
        a, b = ((generator.random((30, 10)) < chance).astype(float) for _ in range(2))
        looks = [resampling.sign_flip((b - a)[:, :k].mean(axis=1)) <= spent_alpha(0.05, k) for k in range(2, 11)]
        alarms += any(looks)
    assert alarms <= 0.05 * experiments
    assert sum(spent_alpha(0.05, look) for look in range(1, 10_000)) <= 0.05


@pytest.mark.parametrize("tasks", [5, 8, 22])
def test_power_of_equivalence_is_that_of_the_test(tasks: int) -> None:
    sample = Sample(Variance(100.0), tasks, 1, reach=100.0, equivalence=True)
    margin = sample.detectable
    assert margin is not None and sample.least == 5 and sample.chance(margin) >= 0.8 > sample.chance(margin * 0.9)
    drawn = np.random.default_rng(7).normal(scale=10.0, size=(400, tasks))
    shown = [Evidence.of(one, Scale(100.0)) for one in drawn]
    passed = np.mean([max(one.above(-margin), one.below(margin)) <= 0.05 for one in shown])
    assert 0.7 < passed < 0.9
    assert Sample(Variance(100.0), 4, 1, reach=100.0, equivalence=True).detectable is None


@pytest.mark.parametrize("b", ["same", "all", "none", "other", "mixed", "fewer"])
@pytest.mark.parametrize("a", ["all", "none", "half", "one"])
@pytest.mark.parametrize("margin", [0.0, 30.0])
def test_power_exists_for_agents_that_always_or_never_succeed(a: str, b: str, margin: float) -> None:
    rng = np.random.default_rng(4)
    first = {
        "all": np.full((10, 3), 100.0),
        "none": np.zeros((10, 3)),
        "one": 100.0 * (np.arange(30) == 0).reshape(10, 3),
    }
    first["half"] = 100.0 * np.repeat(np.arange(10) < 5, 3).reshape(10, 3)
    second = {"same": first[a], "all": first["all"], "none": first["none"], "other": 100 - first[a]}
    second["mixed"] = second["fewer"] = 100.0 * (rng.random((10, 3)) < 0.5)
    runs = [one[: 2 if b == "fewer" and number else 3] for number, one in enumerate(second[b])]
    variance = power.variance_of(list(first[a]), runs)
    sample = Sample(variance, 10, 2.7, reach=100.0, share=True, margin=margin)
    chances = [sample.chance(size) for size in (1, 20, 50, 99, 100)]
    assert all(0 <= one <= 1 for one in chances) and chances == sorted(chances)
    assert sample.detectable is None or 0 <= sample.detectable <= 100


@pytest.mark.parametrize("margin", [0.0, 30.0])
@pytest.mark.parametrize("tasks", [2, 6, 12])
def test_power_exists_if_all_tasks_tie_although_their_runs_vary(tasks: int, margin: float) -> None:
    runs = [np.array([40.0, 60.0])] * tasks
    sample = Sample(power.variance_of(runs, runs), tasks, 2, reach=100.0, margin=margin)
    assert sample.variance.of_mean(2) > 0
    chances = [sample.chance(size) for size in (1, 20, 50, 99, 100)]
    assert all(0 <= one <= 1 for one in chances) and chances == sorted(chances)
    assert sample.detectable is None or 0 < sample.detectable <= 100
