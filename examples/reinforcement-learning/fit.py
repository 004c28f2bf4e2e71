# A cell below `CHOICES`, by which it fits a pipeline of `automl` to all training rows, and writes the submission.
# ruff: noqa: F821
import json
import os
from pathlib import Path

from mleredux_agent_automl.pipelines import FIRST
from mleredux_agent_automl.table import solve

task = json.loads((Path(os.environ["MLEREDUX_TASK_DIR"]) / "task.json").read_text())
facts = {name: task[name] for name in ("sample", "id_columns", "target_columns", "metric")}
pipeline = next(pipeline_choices for pipeline_choices in FIRST if pipeline_choices["family"] == CHOICES["family"])
solve(
    Path(os.environ["MLEREDUX_DATA_DIR"]),
    Path(os.environ["MLEREDUX_SUBMISSION"]),
    facts={**facts, "lower_is_better": task["direction"] == "minimize"},
    advice={"drop_columns": CHOICES["drop_columns"]},
    blend=[{"one": 1.0}],
    pipelines={"one": pipeline},
    folds={},
    seed=0,
    cpus=1,
    memory_mb=1024,
    max_rows=20_000,
)
