"""Run the reference agent, gaming agents and a perfect one on all techniques, with starter tasks and real data.

`python benchmarks/techniques.py --markdown docs/reference/techniques-results.md [--kaggle ../shared/data/kaggle]`

Each task is used unchanged and in planted instances. Grading runs in this process; times are CPU seconds per grading.
Results are stored in `<data-dir>/results.json`, so that an interrupted benchmark continues and can be run in parts
(`--only`); the page states this.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from _measuring import command, machine, table
from mleredux._core.data import DataStore, Prepared
from mleredux._core.plugins import Catalogue
from mleredux._core.plugins.catalogue import set_current
from mleredux._core.stages.prepare import prepare
from mleredux.errors import MlereduxError
from mleredux.models import GradingInput, Task
from mleredux_techniques._kit.data.dataset import save
from mleredux_techniques._kit.data.splits import sampled
from mleredux_techniques._kit.declaration.grader import carry_out
from mleredux_techniques._kit.planting.composition import view
from mleredux_techniques.kit import TRUTH_FILE, Dataset, Instance, combined, load, score

sys.path.insert(0, str(Path(__file__).parents[1] / "plugins" / "techniques" / "tests"))
from technique_documents import BOUND, KINDS, TECHNIQUES, perfect, play, read
from technique_documents.bases import base_of

STARTER = ("breast-cancer", "cell-nuclei", "diabetes", "digits", "wine")
KAGGLE = (
    "spaceship-titanic",
    "nomad2018-predict-transparent-conductors",
    "leaf-classification",
    "random-acts-of-pizza",
    "detecting-insults-in-social-commentary",
)
SIZES = (1_000, 10_000, 100_000)


def main() -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--markdown", type=Path, help="write the page here")
    parser.add_argument("--data-dir", type=Path, default=Path(tempfile.gettempdir()) / "mleredux-techniques")
    parser.add_argument("--kaggle", type=Path, help="folder of <id>/<id>.zip; without it, only starter competitions")
    parser.add_argument("--seeds", type=int, nargs="*", default=[1, 2], help="planted instances of each")
    parser.add_argument("--only", nargs="*", default=[], metavar="TASK", help="these competitions alone, and no times")
    parser.add_argument("--minutes", type=float, default=600.0, help="start no further task after this time")
    parser.add_argument("--again-gaming", action="store_true", help="measure the gaming agents of known tasks again")
    options = parser.parse_args()
    options.data_dir.mkdir(parents=True, exist_ok=True)
    catalogue, data = Catalogue(), DataStore(options.data_dir)
    set_current(catalogue)
    kept = options.data_dir / "results.json"
    known: dict[str, Any] = json.loads(kept.read_bytes()) if kept.exists() else {}
    variants, until = (
        ["", *(f"+planted-public-{seed}" for seed in options.seeds)],
        time.monotonic() + 60 * options.minutes,
    )
    wanted = 0
    for base in (*STARTER, *(KAGGLE if options.kaggle else ())):
        if options.only and base not in options.only:
            continue
        source = options.kaggle / base / f"{base}.zip" if base in KAGGLE else None
        prepare(catalogue.task(base), catalogue, data, source=source)
        for technique in TECHNIQUES:
            for variant in variants:
                name = f"{technique}{variant}@{base}"
                wanted += 1
                if time.monotonic() > until:
                    continue
                if name in known and options.again_gaming and "refused" not in known[name]:
                    prepared = prepare(catalogue.task(name), catalogue, data)
                    known[name] |= gamed(technique, prepared, json.loads((prepared.private / TRUTH_FILE).read_bytes()))
                elif name not in known:
                    known[name] = row(name, technique, catalogue, data)
                    known["in parts"] = known.get("in parts", False) or bool(options.only)
                    kept.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
                    print(name, json.dumps(known[name]), flush=True)
    kept.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    if options.only:
        return
    if "times" not in known and time.monotonic() < until:
        known["times"] = times()
        kept.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    page = write(known, wanted, command())
    if options.markdown:
        options.markdown.write_text(page, encoding="utf-8")
    else:
        print(page)


def row(name: str, technique: str, catalogue: Catalogue, data: DataStore) -> dict[str, Any]:
    """Return scores of all agents on one task, or the reason why the technique does not apply to it."""
    try:
        task = catalogue.task(name)
        prepared = prepare(task, catalogue, data)
    except MlereduxError as error:
        return {"refused": error.message.split("failed: ")[-1]}
    base = task.base or task
    private = prepared.private
    truth, dataset = json.loads((private / TRUTH_FILE).read_bytes()), load(private)
    began = time.process_time()
    scores = {"analyst": grade(technique, analyst(technique, prepared), truth, dataset, base)}
    scores["seconds"] = round(time.process_time() - began, 2)
    best = json.loads(perfect(technique, private).model_dump_json())
    scores["perfect"] = grade(technique, best, truth, dataset, base)
    return scores | gamed(technique, prepared, truth)


def gamed(technique: str, prepared: Prepared, truth: dict[str, Any]) -> dict[str, Any]:
    """Return the maximum score of each gaming agent."""
    return {kind: at_most(technique, play(kind, technique, prepared.public), truth) for kind in KINDS}


def at_most(technique: str, content: dict[str, Any], truth: dict[str, Any]) -> dict[str, Any]:
    """Return the facts of a document, which its score never exceeds; 0 if the reader refuses it."""
    try:
        document = read(technique, content)
    except ValueError:
        return {"score": 0.0}
    return {"score": round(TECHNIQUES[technique].assess(document, truth).score, 3)}


def analyst(technique: str, prepared: Prepared) -> dict[str, Any]:
    """Return the answer of the agent `analyst`, without a sandbox."""
    from mleredux_agent_analyst.tables import read

    answer: dict[str, Any] = import_module(f"mleredux_agent_analyst.answers.{technique}").analyse(read(prepared.public))
    return answer


def grade(
    technique: str, content: dict[str, Any], truth: dict[str, Any], dataset: Dataset, base: Task
) -> dict[str, Any]:
    """Return facts, efficacy and score; a document that the reader refuses scores 0."""
    try:
        document = read(technique, content)
    except ValueError:
        return {"score": 0.0, "facts": None, "efficacy": None}
    assessment = TECHNIQUES[technique].assess(document, truth)
    part = carry_out(TECHNIQUES[technique], document, Instance(view(dataset, technique), truth, base))
    value = round(combined(assessment.score, part.score, decided=assessment.decided), 3)
    return {"score": value, "facts": assessment.score, "efficacy": part.score, "uncertainty": part.uncertainty}


def times() -> list[list[Any]]:
    """Return CPU seconds of one grading, by number of rows and technique."""
    seconds_by_size = []
    for size in SIZES:
        for technique in TECHNIQUES:
            dataset = made_up(size)
            with tempfile.TemporaryDirectory() as folder:
                private = Path(folder)
                declaration = TECHNIQUES[technique]
                if declaration.refuse and declaration.refuse(base_of(dataset), False):
                    continue
                truth = declaration.truth(dataset)
                if declaration.reference:
                    truth |= declaration.reference(Instance(dataset, truth, base_of(dataset)))
                (private / TRUTH_FILE).write_text(json.dumps(truth), encoding="utf-8")
                save(sampled(dataset), private)
                document = perfect(technique, private)
                began = time.process_time()
                score(TECHNIQUES[technique], document, GradingInput(private, private, base_of(dataset), {}))
                seconds_by_size.append([size, technique, round(time.process_time() - began, 1)])
                print(seconds_by_size[-1], flush=True)
    return seconds_by_size


def made_up(rows: int) -> Dataset:
    """Return a table with 20 incomplete numeric columns, 5 texts, two classes (one 10 %), and 80 % training rows."""
    import pandas as pd

    rng = np.random.default_rng(rows)
    frame = pd.DataFrame({f"n{place}": rng.lognormal(0, 1, rows) for place in range(20)})
    level = np.log(frame[["n0", "n1", "n2"]]).sum(axis=1).to_numpy()
    for place in range(5):
        codes = np.clip((level + rng.normal(0, 2, rows)) * (place + 1), -50, 50).astype(int)
        frame[f"t{place}"] = np.array([f"c{code}" for code in codes], dtype=object)
    frame["y"] = np.where(level + rng.normal(0, 1, rows) > np.quantile(level, 0.9), "yes", "no").astype(object)
    for place in range(0, 10, 2):
        frame.loc[rng.random(rows) < 0.2, f"n{place}"] = np.nan
    features = tuple(name for name in frame if name != "y")
    cut = int(0.8 * rows)
    return Dataset(
        task="made-up",
        problem="binary",
        train=frame.iloc[:cut].reset_index(drop=True),
        test=frame.iloc[cut:].reset_index(drop=True),
        target="y",
        targets=("y",),
        ids=(),
        features=features,
        kinds={name: "number" if name.startswith("n") else "text" for name in features},
        outputs=("y",),
        metric="f1",
        train_rows=cut,
        test_rows=rows - cut,
    )


def write(known: dict[str, Any], wanted: int, command: str) -> str:
    """Return the page on those of the requested tasks that ran."""
    timed: list[list[Any]] = known.get("times", [])
    tasks = {name: measured for name, measured in known.items() if "@" in name}
    scored = {name: measured for name, measured in tasks.items() if "refused" not in measured}
    refused = {name: measured["refused"] for name, measured in tasks.items() if "refused" in measured}
    rows = [["task", "analyst", "its facts", "its efficacy", "perfect", *KINDS]]
    for name, measured in scored.items():
        own_scores = measured["analyst"]
        rows.append(
            [
                f"`{name}`",
                _number(own_scores["score"]),
                _number(own_scores["facts"]),
                "–"
                if own_scores["efficacy"] is None
                else f"{own_scores['efficacy']:.2f} ± {own_scores['uncertainty']:.2f}",
                _number(measured["perfect"]["score"]),
                *(_number(measured[kind]["score"]) for kind in KINDS),
            ]
        )
    summary = [
        ["technique", "tasks", "decided", "analyst: lowest, mean, highest", "perfect: lowest", "gaming: highest"]
    ]
    for technique in TECHNIQUES:
        held = [measured for name, measured in scored.items() if name.partition("@")[0].partition("+")[0] == technique]
        if not held:
            continue
        own = [measured["analyst"]["score"] for measured in held]
        summary.append(
            [
                technique,
                str(len(held)),
                str(sum(measured["perfect"]["efficacy"] is not None for measured in held)),
                f"{min(own):.2f}, {np.mean(own):.2f}, {max(own):.2f}",
                f"{min(measured['perfect']['score'] for measured in held):.2f}",
                f"{max(measured[kind]['score'] for measured in held for kind in KINDS):.2f}",
            ]
        )
    seconds = {(rows, name): f"{taken:.1f} s" for rows, name, taken in timed}
    above = [name for name, measured in scored.items() if max(measured[kind]["score"] for kind in KINDS) > BOUND]
    taken = [
        ["rows", *TECHNIQUES],
        *([f"{size:,}", *(seconds.get((size, name), "–") for name in TECHNIQUES)] for size in SIZES),
    ]
    return PAGE.format(
        command=command,
        ran=f"Of {wanted} tasks, {len(tasks)} ran.",
        parts=PARTS if known.get("in parts") else "",
        machine=machine(),
        bound=BOUND,
        met=f"not met by {', '.join(f'`{name}`' for name in above)}" if above else "met",
        summary=table(*summary),
        table=table(*rows),
        times=table(*taken),
        refused="\n".join(f"- `{name}`: {reason}" for name, reason in refused.items()) or "- none",
        slowest=max((measured["seconds"] for measured in scored.values()), default=0.0),
    )


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


PARTS = """
It was created in parts on one machine at other loads too (`--only`, and `--again-gaming` when these agents were fixed),
whose results were put together.\
"""
PAGE = """\
# Technique results

Generated by `{command}`. {machine} {ran}{parts}

Each technique is applied to the starter competitions and to real Kaggle data, unchanged and as planted instances
(`+planted-public-SEED`, with known truth). `analyst` is the reference agent: statistics and rules of thumb, no LLM.
`perfect` knows the truth and recommends the strong choice. The others try to game the score: `everything` lists
everything possible, `empty` as little as the format allows, `example` copies the description's example,
`contradicting` claims one thing and recommends another, and `textbook` always gives the same answer. The table shows
the scores of their facts, which their scores never exceed. The goal, at most {bound} on each instance, is {met}.

score = facts · (0.3 + 0.7 · efficacy); if the data does not distinguish a strong choice from a naive one beyond noise,
efficacy is – and score = facts. *Decided* counts the tasks on which it does so. ± is the standard error over splits.

## Summary

{summary}

## All tasks

{table}

## Where a technique does not apply

These tasks are refused when they are requested or prepared, for the stated reason:

{refused}

## What grading takes

CPU seconds to grade one document on a made-up table of 25 features, by number of rows. Models are fitted on at most
4,000 rows (cross-validation: 1,000), so the time does not grow beyond that; the report states if a sample was used.
The slowest grading above took {slowest:.1f} CPU seconds, for the first grading of a task, including the naive and
strong choices.

{times}
"""


if __name__ == "__main__":
    main()
