"""Planted instances: shared by a competition and its techniques, drawn from a secret, and decided."""

from __future__ import annotations

import hashlib
import json
import math
import operator
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mleredux._core.data import Prepared
from mleredux._core.plugins.catalogue import set_current
from mleredux._core.stages.grade import make_report
from mleredux.errors import NotApplicable
from mleredux_techniques._kit.data.discovery import discover
from mleredux_techniques._kit.judging.predictions import KEY as PREDICTIONS
from mleredux_techniques._kit.planting import composition, seeds, synthetic
from mleredux_techniques._kit.planting.instances import LEVEL
from mleredux_techniques.kit import Dataset, load, strengths
from mleredux_techniques.leakage.technique import KINDS as LEAKS
from technique_documents import TECHNIQUES
from technique_documents.digests import digests
from threadpoolctl import threadpool_limits

Preparer = Callable[[str], Prepared]
SEED = "planted-public-1"


@pytest.fixture(scope="module")
def shop(prepared: Preparer, bench: Any) -> Dataset:
    return discover(bench.task("shop"), prepared("shop").public.parent)[0]


@pytest.fixture(scope="module")
def drafts(shop: Dataset) -> list[Dataset]:
    """One attempt each of several public seeds."""
    return [composition.draft(shop, seeds.Seed(number, public=True).generator("shop", 0)) for number in range(10)]


def test_a_competition_and_its_techniques_share_the_public_files(prepared: Preparer, bench: Any) -> None:
    competition = prepared(f"wine+{SEED}")
    for name in (f"leakage+{SEED}@wine", f"cv@wine+{SEED}"):
        asked = prepared(name)
        for path in competition.public.iterdir():
            assert (asked.public / path.name).read_bytes() == path.read_bytes()
        assert load(asked.private).planted["leaks"]
    task = bench.task(f"wine+{SEED}")
    assert (task.kind, task.metric.id, task.base.id) == ("competition", "log-loss", "wine")
    assert "x01" not in task.describe() and "leak" not in task.describe()
    assert {path.name for path in competition.private.iterdir()} == {"answers.csv", "leaderboard.csv", "planted"}


def test_a_planted_competition_is_graded_against_reference_pipelines(prepared: Preparer, bench: Any) -> None:
    found = prepared(f"wine+{SEED}")
    task, answers = bench.task(f"wine+{SEED}"), found.private / "answers.csv"
    from mleredux._core.stages.grade import grade

    set_current(bench.catalogue)
    best = grade(task, answers, found.private, bench.catalogue)
    assert (best.score, best.teams, best.percentile) == (pytest.approx(0.0, abs=1e-5), 9, 100.0)
    sample = grade(task, found.public / "sample_submission.csv", found.private, bench.catalogue)
    assert sample.score == pytest.approx(np.log(3), abs=1e-4)
    assert "public seed 1" in (best.note or "")
    commitment = f"sha256:{seeds.commitment(seeds.planting_salt())}"
    secret = bench.task("leakage+planted-1@wine")
    assert commitment in make_report(secret, None, path="", exists=False).note and commitment[7:19] in secret.version


def test_equal_seeds_give_equal_bytes_in_every_process() -> None:
    """Of each registered technique that plants: tables, truth, and further public files."""
    program = [sys.executable, "-m", "technique_documents.digests"]
    ran = subprocess.run(program, cwd=Path(__file__).parent, capture_output=True, check=True, text=True)
    with threadpool_limits(1):
        assert json.loads(ran.stdout) == digests(5)


def test_other_seeds_give_other_data(shop: Dataset) -> None:
    first, other, public = (
        composition.draft(shop, seed.generator("shop", 0))
        for seed in (seeds.Seed(5), seeds.Seed(6), seeds.Seed(5, public=True))
    )
    assert not first.train.equals(other.train) and not first.train.equals(public.train)


def test_who_knows_source_code_task_and_data_is_at_chance(shop: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    """The attacker plants with another secret: the truth agrees as often as it does with that of other seeds."""
    monkeypatch.setattr(composition, "generated", lambda dataset, rng, rows: dataset)  # rows tell nothing of the plan
    monkeypatch.setattr(composition, "techniques", lambda: {"leakage": TECHNIQUES["leakage"]})

    def drawn(key: bytes, number: int) -> tuple[frozenset[str], frozenset[str]]:
        planted = composition.draft(small, seeds.generator(key, number, "shop", 0)).planted
        leaking = frozenset(name for leak in planted["leaks"] for name in leak["columns"])
        return frozenset(kind for leak in planted["leaks"] for kind in leak["kinds"]), leaking

    small = Dataset(**{**vars(shop), "train": shop.train.head(120), "test": shop.test.head(60), "ids": ()})
    truth = [drawn(seeds.planting_salt(), number) for number in range(100)]
    guesses = [drawn(b"", number) for number in range(100)]
    for part in (0, 1):
        right = sum(truth[number][part] == guesses[number][part] for number in range(100))
        chance = np.mean([truth[a][part] == guesses[b][part] for a in range(100) for b in range(100) if a != b])
        assert right <= 100 * chance + 4 * math.sqrt(100 * chance * (1 - chance)) + 1, (part, right, chance)
        assert right < 40
    assert truth[:5] == [drawn(seeds.planting_salt(), number) for number in range(5)]


@pytest.mark.parametrize("name", ["shift", "metric", "calibration"])
def test_what_a_technique_draws_for_itself_is_not_known_either(name: str, shop: Dataset) -> None:
    """As above, of all that is drawn for the question: distortions, or the names of columns by what was planted."""

    def drawn(key: bytes, number: int) -> str:
        rng = seeds.generator(key, number, name, "shop")
        plant = TECHNIQUES[name].plant
        assert plant is not None
        made = composition.anonymous(plant(small, rng), rng).planted
        plan = made[PREDICTIONS] if PREDICTIONS in made else made[name]
        return json.dumps([_rough(plan), made["kinds"]], sort_keys=True)

    small = Dataset(**{**vars(shop), "train": shop.train.head(120), "test": shop.test.head(60), "ids": ()})
    truth, guesses = ([drawn(key, number) for number in range(100)] for key in (seeds.planting_salt(), b""))
    right = sum(map(operator.eq, truth, guesses))
    chance = np.mean([truth[a] == guesses[b] for a in range(100) for b in range(100) if a != b])
    assert right <= 100 * chance + 4 * math.sqrt(100 * chance * (1 - chance)) + 1, (right, chance)
    assert right < 40 and chance < 0.4, "most instances are alike"


def _rough(plan: Any) -> Any:
    """A plan with signs of the logarithms of numbers, or of numbers, in place of their values."""
    if isinstance(plan, dict):
        return {key: _rough(value) for key, value in plan.items()}
    if isinstance(plan, list):
        return sorted(map(str, map(_rough, plan)))
    return plan if isinstance(plan, (str, bool)) or plan is None else bool(plan > 1)


def test_names_places_and_types_of_columns_do_not_tell_what_was_planted(drafts: list[Dataset]) -> None:
    places: list[float] = []
    for made in drafts:
        assert list(made.features) == [f"x{place:02d}" for place in range(1, len(made.features) + 1)]
        assert list(made.train.columns) == ["id", *made.features, made.target] and LEVEL not in made.train
        leaking = {name for leak in made.planted["leaks"] for name in leak["columns"]} - {"id"}
        places += [made.features.index(name) / (len(made.features) - 1) for name in leaking]
    assert abs(np.mean(places) - 0.5) < 4 * math.sqrt(1 / 12 / len(places))


def test_the_commitment_opens_to_the_secret_and_not_to_the_salt() -> None:
    from mleredux._core.data.installation import installation_salt

    secret = seeds.planting_salt()
    assert seeds.commitment(secret) == hashlib.sha256(secret).hexdigest()
    assert secret != installation_salt() and installation_salt().hex() not in seeds.Seed(7).note
    assert secret.hex() not in seeds.Seed(7).note and "can be computed by anyone" in seeds.Seed(7, public=True).note


def test_good_advice_on_what_was_planted_is_significantly_better(prepared: Preparer) -> None:
    planted = json.loads((prepared(f"wine+{SEED}").private / "planted" / "dataset.json").read_bytes())["planted"]
    assert set(planted["gaps"]) == {"cv", "imbalance", "encoding", "scaling", "missing"}
    assert all(ratio >= composition.DECIDED for ratio in planted["gaps"].values()), planted["gaps"]


def test_a_question_that_advice_does_not_decide_is_refused(shop: Dataset) -> None:
    undecided = Dataset(**{**vars(shop), "planted": {"gaps": {"scaling": 1.2}}})
    with pytest.raises(NotApplicable, match="good advice is not significantly better than naive advice"):
        composition.refuse_undecided(undecided, "scaling")
    composition.refuse_undecided(undecided, "cv")


def test_a_synthetic_competition_has_known_structure(bench: Any) -> None:
    task = bench.task("synthetic-easy-public-4")
    easy, hard = (synthetic.table(task, np.random.default_rng(4), noise) for noise in (0.5, 2.0))
    assert max(strengths(easy).values()) > max(strengths(hard).values())
    made = composition.draft(easy, np.random.default_rng(5))
    assert made.planted["leaks"] and made.planted["missing"] and made.planted["categories"]
    assert bench.task("leakage@synthetic-easy-public-4").base.id == task.id and "synthetic" in task.tags
    assert bench.task("synthetic-4").version != bench.task("synthetic-public-4").version


def test_all_kinds_of_leaks_occur_and_tell_nothing_in_the_test(drafts: list[Dataset]) -> None:
    met: set[str] = set()
    for made in drafts:
        told = strengths(made)
        truth = (made.test["returned"] == "1").to_numpy()
        for leak in made.planted["leaks"]:
            met.update(leak["kinds"][:1])
            for column in set(leak["columns"]) - {"id"}:
                if made.kinds[column] == "number":
                    assert told[column] > 0.3
                    assert abs(np.corrcoef(made.test[column].to_numpy(float), truth)[0, 1]) < 0.35
    assert met | {"duplicate_rows"} == set(LEAKS) - {"text_value"}


def test_structure_mechanisms_categories_and_ratios_are_as_planted(drafts: list[Dataset]) -> None:
    mechanisms: set[str] = set()
    for made in drafts:
        if made.group is not None:
            ours, theirs = made.group.of(made.train), made.group.of(made.test)
            assert not set(ours) & set(theirs) and ours.value_counts().mean() > 2
        else:
            assert made.time is None or made.train[made.time].max() <= made.test[made.time].min()
        for fact in made.planted["missing"]:
            mechanisms.add(fact["mechanism"])
            assert 0.04 < made.train[fact["column"]].isna().mean() < 0.5
        for item in made.planted["categories"]:
            assert made.train[item["column"]].nunique() > 1
        counts = made.train["returned"].value_counts()
        assert counts.max() / counts.min() > 2.5
    assert mechanisms == {"MCAR", "MAR", "MNAR"}


def test_data_with_too_few_rows_is_refused(shop: Dataset) -> None:
    with pytest.raises(NotApplicable, match="too few rows"):
        composition.draft(Dataset(**{**vars(shop), "train": shop.train.head(20)}), np.random.default_rng(0))


def test_the_truth_and_the_secret_are_private(prepared: Preparer) -> None:
    found = prepared(f"leakage+{SEED}@wine")
    public = "".join(path.read_text() for path in Path(found.public).iterdir())
    assert "leaks" not in public and seeds.planting_salt().hex() not in public
    words = ("leakage", "metric", "features")  # the question, and what each task has
    assert all(kind not in public for kind in TECHNIQUES if kind not in words)
