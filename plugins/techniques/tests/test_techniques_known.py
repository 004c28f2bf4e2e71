"""Tables of known truth: the right document wins clearly over a wrong one, and honest columns are not convicted."""

from __future__ import annotations

import json
import zlib
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import blind_tables
import held_tables
import numpy as np
import pandas as pd
import pytest
from known_tables import NAMES, Known, base, dataset_of, facts_of, kinds, made, random_test, scores_of, truth_of
from mleredux_techniques._kit.data.structure import in_time
from mleredux_techniques.eda.profile import drift
from mleredux_techniques.kit import Dataset, GroupColumn, Instance, duplicates
from mleredux_techniques.leakage.losses import losses
from mleredux_techniques.missing.mechanisms import mechanisms
from mleredux_techniques.scaling.grading import STUDY
from technique_documents import TECHNIQUES, read
from technique_documents.bases import base_of, rare

RIGHT, WRONG = 0.8, 0.5


@pytest.mark.parametrize(("technique", "kind"), [(name, kind) for name in NAMES for kind in kinds(name)])
def test_the_right_document_wins_clearly(technique: str, kind: str, tmp_path: Path) -> None:
    known = made(technique, kind)
    right, wrong = (scores_of if known.executed else facts_of)(technique, known, tmp_path / "task")
    nothing = technique == "leakage" and known.executed and not known.right  # then the whole score is at most half
    assert right >= (WRONG if nothing else RIGHT), f"the right document has {right}"
    assert wrong <= (RIGHT / 2 if nothing else WRONG), f"the wrong document has {wrong}"


HELD = (
    *("leakage/two_dates", "leakage/mean_by_crew", "leakage/honest_later_units", "cv/whole_days", "cv/many_decoys"),
    *("missing/by_row_number", "missing/nothing_of_many", "missing/middle_of_target"),
    *("encoding/sums_of_money", "encoding/ratings_of_bonds", "encoding/school_marks", "scaling/incomes"),
)
BLIND = (
    *("leakage/status_texts", "leakage/cents", "leakage/honest_history"),
    *("encoding/german_sizes", "encoding/addresses", "encoding/with_unknown", "encoding/versions"),
)
"""Some of the tables of `benchmarks/technique_tables.py`, whose facts decide them; blind ones that were lost."""


@pytest.mark.parametrize(
    ("tables", "name"), [*((held_tables, name) for name in HELD), *((blind_tables, name) for name in BLIND)]
)
def test_the_right_document_wins_on_tables_that_were_held_back(tables: ModuleType, name: str, tmp_path: Path) -> None:
    technique, kind = name.split("/")
    known = tables.kinds(technique)[kind](np.random.default_rng([zlib.crc32(kind.encode()), 0]))
    right, wrong = facts_of(technique, known, tmp_path / "task")
    assert right >= RIGHT and right - wrong >= 0.2, (right, wrong)


@pytest.mark.parametrize("technique", ["features", "missing", "leakage", "scaling", "eda", "shift"])
def test_a_document_has_room_for_all_that_a_wide_table_shows(technique: str, tmp_path: Path) -> None:
    """70 columns have nearly the same values, and are missing in the same rows: 2,415 pairs; 60 tell the target."""
    rng = np.random.default_rng(0)
    table = base(rng, "regression", 500)
    gap = rng.random(500) < 0.3
    for place in range(70):
        copied = table["y"] if place < 60 else table["f3"]
        table[f"w{place}"] = (copied + rng.normal(0, 0.001, 500)).round(4).mask(gap)
    dataset, task = dataset_of(Known(table, random_test(rng, 500), {}, {}, "rmse"), tmp_path / "task")
    truth = truth_of(technique, dataset, task)
    solution = TECHNIQUES[technique].solution
    assert solution is not None
    document = read(technique, solution(Instance(dataset, truth, task)))
    assert TECHNIQUES[technique].assess(document, truth).score == pytest.approx(1.0)


def test_fewer_than_two_in_a_hundred_honest_columns_are_convicted(tmp_path: Path) -> None:
    convicted = judged = 0
    for seed in range(18):
        rng = np.random.default_rng(seed)
        problem = ("binary", "multiclass", "regression")[seed % 3]
        rows = 300 if seed % 2 else 700
        table = base(rng, problem, rows)
        for place in range(8):
            level = rng.random() * 2 * table[f"f{place % 4}"] + rng.normal(size=rows)
            table[f"h{place}"] = [
                level.round(3),
                np.exp(level).round(2),
                np.floor(level * 3),
                pd.Series([f"k{int(value * 20)}" for value in level]),
            ][place % 4].where(rng.random(rows) > (0.2 if place == 5 else 0))
        metric = {"binary": "roc-auc", "multiclass": "accuracy", "regression": "rmse"}[problem]
        dataset, _task = dataset_of(Known(table, random_test(rng, rows), [], [], metric), tmp_path / str(seed))
        convicted += sum(len(columns) for columns, _skill in losses(dataset)[0])
        judged += len(dataset.features)
    assert judged >= 200
    assert convicted < 0.02 * judged


def test_the_strong_choice_for_large_tables_is_found_in_the_preparation(tmp_path: Path) -> None:
    """It is the one that grading finds for tables of which the truth does not know it."""
    rng = np.random.default_rng(0)
    rows = base(rng, "regression", 6_500)
    rows["f0"] = np.exp(3 * rows["f0"])
    dataset, task = dataset_of(Known(rows, random_test(rng, len(rows)), {}, {}, "rmse"), tmp_path / "task")
    told = STUDY.reference(Instance(dataset, {}, task))
    assert STUDY.strong(Instance(dataset, {}, task)) == STUDY.panel(Instance(dataset, {}, task))[told["strong"]]
    assert told["strong"] > 0, "the logarithm helps"
    small = replace(dataset, train=dataset.train.head(500))
    assert STUDY.reference(Instance(small, {}, task)) == {}


def test_no_column_drives_gaps_of_few_groups_by_chance(tmp_path: Path) -> None:
    """Rows of a group that lack values together are one piece of evidence, however many they are."""
    rng = np.random.default_rng(0)
    groups = pd.DataFrame({f"f{place}": rng.integers(0, 3, 150) for place in range(30)}).assign(group=np.arange(150))
    groups["gap"] = pd.Series(rng.choice(["x", "y", "z"], 150)).where(rng.random(150) < 0.6)
    rows = groups.loc[np.repeat(np.arange(150), 12)].reset_index(drop=True)
    rows = rows.assign(y=rng.normal(size=len(rows)), id=rng.permutation(len(rows)))
    known = Known(rows, rows["group"].to_numpy() % 10 < 3, {}, {}, "rmse")
    dataset, _task = dataset_of(known, tmp_path / "task")
    assert dataset.group is not None
    assert mechanisms(dataset, ["gap"])["gap"]["depends_on"] == []


def test_whole_numbers_may_have_gaps_in_the_test_only(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"f0": rng.integers(0, 9, 200), "f1": rng.integers(0, 9, 200)}, dtype="Int64")
    test = np.arange(200) >= 140
    rows.loc[150:160, "f0"] = pd.NA
    rows.loc[170] = rows.loc[0]
    known = Known(rows.assign(y=rng.integers(0, 2, 200)), test, {}, {})
    dataset, _task = dataset_of(known, tmp_path / "task")
    pairs = [list(map(tuple, frame[["f0", "f1"]].to_numpy())) for frame in (dataset.train, dataset.test)]
    assert duplicates(dataset) == (len(pairs[0]) - len({*pairs[0]}), sum(pair in pairs[0] for pair in pairs[1]))


@pytest.mark.parametrize("years", [8, 12])
def test_drift_that_follows_from_a_few_periods_is_undecided(years: int, tmp_path: Path) -> None:
    """Columns of the year differ in the test by construction; others, whose rows are independent, are decided."""
    rng = np.random.default_rng(years)
    year = rng.permutation(np.repeat(np.arange(years), 200))
    rows = pd.DataFrame({"year": year, "price": (year * 7 + 3) % years, "f0": rng.normal(size=len(year))})
    rows = rows.assign(recent=(year >= years - 2) * 1.0, y=rng.normal(size=len(year)), id=rng.permutation(len(year)))
    dataset, _task = dataset_of(Known(rows, year >= years - 2, {}, {}, "rmse"), tmp_path / "task")
    dataset = replace(dataset, group=GroupColumn("year"), time=None)
    judged = {name: drift(dataset, name, "number") for name in ("year", "price", "f0")}
    assert judged["year"][0] == 1 and [unsure for _distance, _differs, unsure in judged.values()] == [True, True, False]
    alone = drift(replace(dataset, group=None), "year", "number")
    assert alone[1:] == (True, False)


@pytest.mark.parametrize("lost", [True, False])
def test_gaps_of_whole_groups_may_depend_on_the_group(lost: bool, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    wave = rng.permutation(np.repeat(np.arange(9), 150))
    rows = pd.DataFrame({"wave": wave, "f0": rng.normal(size=len(wave)), "y": rng.normal(size=len(wave))})
    gone = np.isin(wave, [1, 4, 8]) if lost else rng.random(len(wave)) < 0.3
    gap = pd.Series(rng.choice(["x", "y", "z"], len(wave))).where(~gone)
    rows = rows.assign(gap=gap, id=rng.permutation(len(wave)))
    dataset, _task = dataset_of(Known(rows, wave > 6, {}, {}, "rmse"), tmp_path / "task")
    dataset = replace(dataset, group=GroupColumn("wave"), time=None)
    assert mechanisms(dataset, ["gap"])["gap"]["accepted"] == ["MCAR", "MAR"][: 1 + lost]


@pytest.mark.parametrize("moved", [True, False])
def test_an_expected_target_is_worth_the_share_of_the_change_that_it_names(moved: bool) -> None:
    truth = {"distances": {}, "broken": [], "unsure": [], "target": {"": 9.0}, "train": {"": 5.0}, "spread": 10.0}
    truth |= {"move": 0.4, "moved": moved, "changes": None, "open": []}

    def worth(expected: float) -> float:
        document = {"features": [], "target": expected, "changes": None, "drop": [], "weights": "none", "recent": 1.0}
        facts = TECHNIQUES["shift"].assess(read("shift", document), truth)
        return next(part.score or 0.0 for part in facts.parts if part.name == "target")

    worths = [worth(expected) for expected in (1.0, 5.0, 6.0, 7.0, 8.0, 9.0)]
    assert worths == sorted(worths) and worths[-1] == 1
    assert (worths[1] == 0 < worths[2] < worths[3] < 1) if moved else worths[1:] == [1.0] * 5


@pytest.mark.parametrize("technique", ["scaling", "eda"])
def test_naming_all_columns_shows_nothing_if_all_belong(technique: str, tmp_path: Path) -> None:
    """Then it counts like a count, and only an answer that leaves some out is decided to be wrong."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(np.exp(rng.normal(size=(900, 3)))).add_prefix("f")
    rows = rows.assign(y=rows.sum(axis=1), id=rng.permutation(900))
    dataset, task = dataset_of(Known(rows, random_test(rng, 900), {}, {}, "rmse"), tmp_path / "task")
    spec = TECHNIQUES[technique]
    truth = spec.truth(dataset)
    assert spec.solution is not None
    solution = spec.solution(Instance(dataset, {**truth, "strong": [] if technique == "eda" else 0}, task))
    part, listed = ("skewed", "features") if technique == "scaling" else ("relation", "columns")
    some = json.loads(json.dumps(solution))
    some[listed][0][part] = False if technique == "scaling" else "none"
    solution[listed][0][part] = True if technique == "scaling" else "monotone"
    for document, decides in ((solution, False), (some, True)):
        parts = {figure.name: figure for figure in spec.assess(read(technique, document), truth).parts}
        assert (parts[part].decides, parts[part].score == 1) == (decides, not decides)


@pytest.mark.parametrize("seed", range(4))
def test_what_varies_within_groups_is_judged_by_all_rows(seed: int) -> None:
    """Rows of a group are alike, which makes what differs between groups uncertain, not what differs within them."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(60), 20)
    between, within = rng.normal(0, 1, 60)[groups], rng.normal(0, 1, len(groups))
    y = rng.normal(0, 2, 60)[groups] + 0.6 * within + rng.normal(0, 1, len(groups))
    rows = pd.DataFrame({"group": [f"g{number}" for number in groups], "between": between, "within": within, "y": y})
    held = groups >= 45
    dataset = Dataset(
        task="t", problem="regression", target="y", targets=("y",), ids=(), features=("between", "within"),
        train=rows[~held].reset_index(drop=True), test=rows[held].reset_index(drop=True),
        kinds={"between": "number", "within": "number", "group": "text"}, group=GroupColumn("group"),
    )  # fmt: skip
    tells = TECHNIQUES["features"].truth(dataset)["tells"]
    assert tells["within"] == "alone" and tells.get("between") != "alone", tells


@pytest.mark.parametrize("names", [["Jan", "Oct", "Dec"], ["Sat", "Sun", "Mon"], ["0001-02-03", "9999-12-31"]])
def test_texts_that_a_parser_takes_for_dates_of_any_year_are_read(names: list[str]) -> None:
    values = pd.Series(names * 4)
    passed = in_time(values)
    assert passed.index.equals(values.index) and passed.dtype == float
    assert passed.isna().all() or passed.tolist() == passed[: len(names)].tolist() * 4


@pytest.mark.parametrize("known", [None, 0.4])
@pytest.mark.parametrize("columns", [["f0"], ["f0", "f1"], ["text"], []])
def test_the_solution_states_a_leak_of_unknown_strength_consistently(columns: list[str], known: float | None) -> None:
    kind = "interaction" if len(columns) > 1 else "future_value" if columns else "id_order"
    leak = {"kinds": [kind], "columns": columns, "strength": known, "planted": False}
    strengths = {"f0": 0.4, "f1": 0.3}
    truth = {"duplicate_rows": 0, "shared_rows": 0, "strengths": strengths, "leaks": [leak], "unjudged": []}
    instance = Instance(rare(), truth, base_of(rare()))
    document = read("leakage", TECHNIQUES["leakage"].solution(instance))  # type: ignore[misc]
    assert TECHNIQUES["leakage"].assess(document, truth).score == 1.0
