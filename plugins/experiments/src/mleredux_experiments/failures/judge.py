"""A second opinion: a language model names the primary failure of each run, and its agreement with the rules is
measured.

Its input was written by an agent, which may address the model: only known categories are accepted as answers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mleredux.errors import MlereduxError
from mleredux.plugin.artifact import LlmUse, Run
from mleredux_rollout import BudgetExhausted, open_judge

from mleredux_experiments.failures.categories import CATEGORIES, NONE
from mleredux_experiments.failures.evidence import Evidence
from mleredux_experiments.results.rollouts import read_rollout
from mleredux_experiments.results.sources import read_run

_LINES, _STEPS, _CHARS = 60, 6, 1_500
_LISTED = "\n".join(f"{category.id}: {category.title}" for category in CATEGORIES.values())
_ORDER = Path(__file__).with_name("judge.txt").read_text(encoding="utf-8").format(categories=_LISTED, none=NONE)


@dataclass(frozen=True)
class Opinions:
    """A model's opinions on runs.

    Attributes:
        categories: The category that it names for each run, or `none`; runs beyond its budget are absent.
        use: Its use of tokens and money; no run is charged for it.
    """

    categories: dict[str, str]
    use: LlmUse

    def kappa(self, rules: Mapping[str, str]) -> float | None:
        """Return its agreement with the primary categories by the rules."""
        return kappa([rules[run] for run in self.categories], list(self.categories.values()))


def judged(runs: Sequence[Run], model: str, cost_usd: float | None = None) -> Opinions:
    """Ask a model of the gateway about runs, with one call per run.

    Args:
        cost_usd: The budget for all runs together.

    Raises:
        MlereduxError: There is no gateway, the gateway fails, or an answer is not a category.
    """
    categories: dict[str, str] = {}
    with open_judge(runs[0], model, calls=len(runs), cost_usd=cost_usd) as judge:
        for run in runs:
            try:
                answer = judge.ask(_ORDER, _account(run))
            except BudgetExhausted:
                break
            named = re.search(r'"category"\s*:\s*"([a-z-]+)"', answer)
            if named is None or named[1] not in (*CATEGORIES, NONE):
                raise MlereduxError(f"{model} returned no category for {run.id}.", hint="Choose another model.")
            categories[run.id] = named[1]
    return Opinions(categories, judge.use)


def kappa(rules: Sequence[str], judge: Sequence[str]) -> float | None:
    """Return Cohen's kappa (1960), the agreement beyond chance, computed by statsmodels; None if both put all runs in
    one category."""
    import numpy as np
    from statsmodels.stats.inter_rater import cohens_kappa

    names, places = np.unique([*rules, *judge], return_inverse=True)
    if len(names) < 2:
        return None
    table, *_ = np.histogram2d(places[: len(rules)], places[len(rules) :], np.arange(len(names) + 1))
    return float(cohens_kappa(table).kappa)


def _account(run: Run) -> str:
    row = read_run(run.path, rollouts=False)
    evidence = Evidence(row, run.path, trace=read_rollout(f"{run.path}/rollout.json"))
    facts = {
        "message": run.message, "submitted": row.submitted, "lower is better": row.lower_is_better,
        **{name: getattr(row, name) for name in ("status", "cause", "valid", "score", "median", "gold", "hours")},
        "versions": [[version.seconds, version.valid, version.score] for version in row.versions[-20:]],
        "time limit": row.time_limit,
    }  # fmt: skip
    steps = [
        f"step {step.number}:\n{step.action[-_CHARS:]}\n{step.output[-_CHARS:]}" for step in evidence.steps[-_STEPS:]
    ]
    log = "\n".join(line[:300] for line in evidence.log[-_LINES:])
    return "\n".join(["---", json.dumps(facts), *steps, "log:", log])
