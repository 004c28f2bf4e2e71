"""Results in the formats of public collections: every-eval-ever, and `.eval_results` on the Hugging Face Hub."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mleredux_rollout import ExportedRun, Format

from mleredux_bridge_formats.messages import dumped


def _every_eval_ever(runs: Sequence[ExportedRun], options: Mapping[str, Any]) -> Iterable[bytes]:
    """Yield records of schema version 0.3 (https://github.com/evaleval/every_eval_ever)."""
    for exported in runs:
        run, report = exported.run, exported.report
        assert report is not None
        rollout = exported.rollout
        model = (rollout.agent.model_name if rollout else None) or run.spec.agent
        graded = str(report.created_at.timestamp())
        details = {
            "task_version": report.task_version,
            "medal": report.medal_name,
            "verdict": report.verdict.status,
            "network": run.spec.network,
            "seed": str(run.spec.seed),
            **({} if report.percentile is None else {"percentile": str(report.percentile)}),
        }
        yield dumped(
            {
                "schema_version": "0.3.0",
                "evaluation_id": f"{run.spec.task}/{run.spec.agent}/{run.id}",
                "evaluation_timestamp": graded,
                "retrieved_timestamp": str(time.time()),
                "source_metadata": {
                    "source_name": "mleredux",
                    "source_type": "evaluation_run",
                    "source_organization_name": str(options["organization"]),
                    "evaluator_relationship": str(options["relationship"]),
                },
                "eval_library": {"name": "mleredux", "version": run.use.packages.get("mleredux", "unknown")},
                "model_info": {
                    "name": model,
                    "id": model,
                    "additional_details": {
                        "deployment_type": "unknown",
                        "model_availability": "unknown",
                        "agent": run.spec.agent,
                        "agent_version": str(run.use.agent_version),
                    },
                },
                "evaluation_results": [
                    {
                        "evaluation_result_id": run.id,
                        "evaluation_name": run.spec.task,
                        "evaluation_timestamp": graded,
                        "source_data": {"dataset_name": run.spec.task, "source_type": "other"},
                        "metric_config": {
                            "metric_id": report.metric,
                            "metric_name": report.metric,
                            "lower_is_better": report.is_lower_better,
                        },
                        "score_details": {"score": exported.score, "details": details},
                        "generation_config": {
                            "generation_args": {
                                "eval_limits": {"time_limit": int(run.spec.limits.time_limit)},
                                "sandbox": {"type": run.spec.sandbox},
                            }
                        },
                    }
                ],
            }
        )


def _eval_results(runs: Sequence[ExportedRun], options: Mapping[str, Any]) -> Iterable[bytes]:
    """Yield a list of `EvalResultEntry` of `huggingface_hub`, as JSON, which is valid YAML."""
    entries = []
    for exported in runs:
        run, report = exported.run, exported.report
        assert report is not None
        notes = f"agent {run.spec.agent}, seed {run.spec.seed}, {report.metric}, result {report.verdict.status}"
        dataset = {"id": str(options["dataset"]), "task_id": run.spec.task}
        date = report.created_at.isoformat(timespec="seconds")
        entries.append({"dataset": dataset, "value": exported.score, "date": date, "notes": notes})
    yield json.dumps(entries, indent=1, allow_nan=False).encode() + b"\n"


EVERY_EVAL_EVER = Format(
    id="eee",
    title="Results for every-eval-ever (0.3)",
    suffix=".json",
    write=_every_eval_ever,
    needs=("score",),
    trusted=True,
    options={"organization": "unknown", "relationship": "other"},
)
EVAL_RESULTS = Format(
    id="eval-results",
    title="Results for .eval_results of a model on the Hugging Face Hub",
    suffix=".yaml",
    write=_eval_results,
    together=True,
    needs=("score",),
    trusted=True,
    options={"dataset": "mleredux/mleredux"},
)
