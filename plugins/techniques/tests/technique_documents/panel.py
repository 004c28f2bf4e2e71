"""Scripted agents of graded ability, for item analysis: how difficult a question is, and what its score tells.

From those that read nothing, over one that counts right and judges always alike, and one that knows all facts and
gives naive advice, to rules of thumb (the agent `analyst`) and the truth with the best advice of the panels.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from mleredux_techniques.kit import TRUTH_FILE, Dataset

from technique_documents import perfect, play
from technique_documents.debugging import crash_repaired

PANEL = ("example", "empty", "textbook", "constant", "naive advice", "analyst", "perfect")
"""The agents, least able first."""
_MEAN = {"name": "SimpleImputer", "strategy": "mean"}
_MODE = {"name": "SimpleImputer", "strategy": "most_frequent"}


def answers(technique: str, public: Path, private: Path, dataset: Dataset | None = None) -> dict[str, dict[str, Any]]:
    """The documents of all agents of the panel, as JSON values; `dataset` as for `perfect`."""
    from mleredux_agent_analyst.tables import read

    best: dict[str, Any] = perfect(technique, private, dataset).model_dump(mode="json")
    found = {agent: play(agent, technique, public) for agent in ("example", "empty", "textbook")}
    truth = json.loads((private / TRUTH_FILE).read_bytes())
    for agent in ("constant", "naive advice"):
        found[agent] = naive(technique, best, truth, facts=agent == "naive advice")
    found["analyst"] = import_module(f"mleredux_agent_analyst.answers.{technique}").analyse(read(public))
    return {**found, "perfect": best}


def naive(technique: str, best: dict[str, Any], truth: dict[str, Any], *, facts: bool) -> dict[str, Any]:
    """The true counts with naive advice; without `facts`, every judgement is `no` too."""
    made = dict(best)
    module = import_module(f"technique_documents.{technique}")
    if hasattr(module, "naive"):
        made |= module.naive(best, truth, facts=facts)
    elif technique == "imbalance":
        made["strategies"] = [{"name": "class_weight" if best["strategies"][0]["name"] == "none" else "none"}]
    elif technique == "leakage":
        no = {"mitigation": {"name": "none"}}
        made["risks"] = [{**risk, **no} for risk in best["risks"]] if facts else []
    elif technique == "debugging":
        made["script"] = crash_repaired(truth)
        made["faults"] = [fault for fault in best["faults"] if facts or fault["kind"] == "crash"]
    elif technique == "cv":
        made["method"] = {"name": "KFold"}
        made |= {} if facts else {"groups": None, "time": None}
    elif technique == "missing":
        always = {} if facts else {"mechanism": "MCAR", "depends_on": []}
        made["columns"] = [
            {**one, "imputation": _MODE if one["imputation"].get("strategy") == "constant" else _MEAN, **always}
            for one in best["columns"]
        ]
    elif technique == "encoding":
        named = {"numeric": "none", "binary": "OrdinalEncoder"}
        made["features"] = [
            {**one, "encoding": {"name": named.get(one["type"], "OrdinalEncoder")}}
            | ({} if facts or one["cardinality"] <= 2 else {"type": "nominal"})
            for one in best["features"]
        ]
    elif technique == "scaling":
        always = {} if facts else {"skewed": False, "outliers": False}
        made["features"] = [{**one, "scaler": {"name": "StandardScaler"}, **always} for one in best["features"]]
    return made


def discrimination(scores: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """The correlation of each item's score with the mean score of all other items, over the agents.

    F. M. Lord and M. R. Novick, "Statistical Theories of Mental Test Scores" (1968), section 15.5: the corrected
    point-biserial correlation, of scores between 0 and 1 in place of right and wrong.

    Args:
        scores: Agent → item → score.
    """
    items = list(next(iter(scores.values())))
    table = np.array([[told[item] for item in items] for told in scores.values()])
    found = {}
    for place, item in enumerate(items):
        rest = np.delete(table, place, axis=1).mean(axis=1)
        varies = table[:, place].std() > 0 and rest.std() > 0
        found[item] = round(float(np.corrcoef(table[:, place], rest)[0, 1]), 3) if varies else 0.0
    return found
