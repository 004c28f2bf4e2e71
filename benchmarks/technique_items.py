"""Item analysis of the techniques on planted instances, with a panel of scripted agents of graded ability.

`python benchmarks/technique_items.py --markdown docs/reference/technique-items.md [--base wine diabetes] [--seeds 1 2]`

Difficulty is 1 minus the mean score, discrimination the corrected point-biserial correlation. Results are kept in
`<data-dir>/items.json`, so that an interrupted benchmark continues; `--minutes` stops it, and the page states what ran.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from _measuring import command, machine, table
from mleredux._core.data import DataStore
from mleredux._core.plugins import Catalogue
from mleredux._core.plugins.catalogue import set_current
from mleredux._core.stages.prepare import prepare
from mleredux.errors import MlereduxError
from mleredux.models import GradingInput
from mleredux_techniques.kit import TRUTH_FILE, score

sys.path.insert(0, str(Path(__file__).parents[1] / "plugins" / "techniques" / "tests"))
from technique_documents import TECHNIQUES, read
from technique_documents.panel import PANEL, answers, discrimination
from technique_documents.source import TECHNIQUES as EXPECTED
from technique_documents.source import source


def main() -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--markdown", type=Path, help="write the page here")
    parser.add_argument("--data-dir", type=Path, default=Path(tempfile.gettempdir()) / "mleredux-techniques")
    parser.add_argument("--base", nargs="*", default=["wine", "diabetes"])
    parser.add_argument("--seeds", type=int, nargs="*", default=[1, 2], help="public seeds")
    parser.add_argument("--minutes", type=float, default=60.0, help="start no further task after this time")
    options = parser.parse_args()
    catalogue, data, began = Catalogue(), DataStore(options.data_dir), time.monotonic()
    set_current(catalogue)
    options.data_dir.mkdir(parents=True, exist_ok=True)
    kept = options.data_dir / "items.json"
    known: dict[str, Any] = json.loads(kept.read_bytes()) if kept.exists() else {}
    wanted = [
        f"{technique}+planted-public-{seed}@{base}"
        for seed in options.seeds
        for base in options.base
        for technique in TECHNIQUES
    ]
    for name in wanted:
        if name not in known and time.monotonic() - began < 60 * options.minutes:
            known[name] = row(name, catalogue, data)
            kept.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
            print(name, json.dumps(known[name]), flush=True)
    ran = {name: known[name] for name in wanted if name in known}
    page = write(ran, len(wanted), command())
    if options.markdown:
        options.markdown.write_text(page, encoding="utf-8")
    else:
        print(page)


def row(name: str, catalogue: Catalogue, data: DataStore) -> dict[str, Any]:
    """Return scores of the panel on one task, or the reason why it is refused."""
    technique = name.partition("+")[0]
    try:
        task = catalogue.task(name)
        prepared = prepare(task, catalogue, data)
    except MlereduxError as error:
        return {"refused": error.message}
    item: dict[str, Any] = {}
    told_by = answers(technique, prepared.public, prepared.private)
    if technique in EXPECTED:
        truth = json.loads((prepared.private / TRUTH_FILE).read_bytes())
        question = json.loads((prepared.public / "question.json").read_bytes())
        told_by["source"] = source(technique, told_by["perfect"], truth, question)
    for agent, content in told_by.items():
        try:
            document = read(technique, content)
        except ValueError:
            item[agent] = 0.0  # rejected
            continue
        given = GradingInput(prepared.private, prepared.private, task, {})
        began = cpu_seconds()
        graded = score(TECHNIQUES[technique], document, given)
        item[agent] = round(graded.value, 3)
        item["seconds"] = max(item.get("seconds", 0.0), round(cpu_seconds() - began, 1))
        item["decided"] = graded.details["efficacy"]["score"] is not None
    return item


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and its children so far."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def write(known: dict[str, Any], wanted: int, command: str) -> str:
    """Return the page on those of the requested tasks that ran."""
    scored = {name: item for name, item in known.items() if "refused" not in item}
    scores = {agent: {name: item[agent] for name, item in scored.items()} for agent in PANEL}
    by_item = discrimination(scores)
    summary = [["technique", "tasks", "decided", "difficulty", "discrimination", *PANEL]]
    plain = [name for name in scored if name.startswith("cv+") and not scored[name]["decided"]]
    for technique in (*TECHNIQUES, NOTHING, "all"):
        held = [name for name in scored if technique in ("all", name.partition("+")[0]) and name not in plain]
        held = plain if technique == NOTHING else held
        if not held:
            continue
        means = {agent: float(np.mean([scores[agent][name] for name in held])) for agent in PANEL}
        summary.append(
            [
                technique,
                str(len(held)),
                str(sum(scored[name]["decided"] for name in held)),
                f"{1 - np.mean(list(means.values())):.2f}",
                f"{np.mean([by_item[name] for name in held]):.2f}",
                *(f"{means[agent]:.2f}" for agent in PANEL),
            ]
        )
    defaults = [["technique", "tasks", "source", "analyst", "constant"]]
    for technique in EXPECTED:
        held = [item for name, item in scored.items() if technique == name.partition("+")[0] and "source" in item]
        if held:
            means = [f"{np.mean([item[agent] for item in held]):.2f}" for agent in defaults[0][2:]]
            defaults.append([technique, str(len(held)), *means])
    rows = [["task", "discrimination", *PANEL]]
    rows += [[f"`{n}`", f"{by_item[n]:.2f}", *(f"{scores[agent][n]:.2f}" for agent in PANEL)] for n in scored]
    refused = [f"- `{name}`: {item['refused']}" for name, item in known.items() if "refused" in item]
    return PAGE.format(
        command=command,
        machine=machine(),
        ran=len(known),
        wanted=wanted,
        stopped=" before it was stopped" if len(known) < wanted else "",
        summary=table(*summary),
        table=table(*rows),
        defaults=table(*defaults),
        refused="\n".join(refused) or "- none",
        seconds=float(np.median([item["seconds"] for item in scored.values()])),
    )


NOTHING = "cv without groups or time"
PAGE = """\
# Technique items

Generated by `{command}`. {machine}
Of {wanted} tasks, {ran} ran{stopped}.

A panel of scripted agents of increasing ability answers planted instances (public seeds, so anyone can repeat this).
`example` copies the description's example, `empty` claims as little as the format allows, and `textbook` always gives
the same answer. `constant` counts correctly, answers "no" to every judgment and gives naive advice; `naive advice`
knows all facts but gives naive advice. `analyst` applies rules of thumb; `perfect` knows the truth and gives the best
advice of the panels.

Difficulty is 1 minus the panel's mean score. Discrimination is the correlation of a task's score with the mean score
of all other tasks over the agents (corrected point-biserial). Instances of `cv` without groups or time, for which the
constant answer is correct, are listed separately and not included in *all*. *Decided* counts the tasks on which good
advice differs significantly from naive advice.

## Summary

{summary}

Grading took a median of {seconds:.1f} CPU seconds per task (for the slowest document of each task, including the naive
and strong choices).

## An agent that has read the source code

`source` counts correctly, as `constant` and `perfect` do, but measures none of the properties on which a judgment
depends; it gives the answers that the planting code makes most probable: which features drift far, and that few
features are predictive and probabilities are overconfident.

{defaults}

## All tasks

{table}

## Refused

{refused}
"""


if __name__ == "__main__":
    main()
