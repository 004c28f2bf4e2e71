"""Grade the submission in Harbor's verifier; exported with each task, and executed by its `tests/test.sh`."""

from __future__ import annotations

import json
import sys
from pathlib import Path


def main(submission: str, task: str, rule: str, invalid: str, data: str, log: str) -> None:
    """Grade `submission` and write `reward.json` and the report into the folder `log`."""
    import mleredux
    from mleredux_agents import rule_of

    report = mleredux.grade(submission, task, data_dir=data)
    value = rule_of(rule, float(invalid)).of_report(report)
    reward = {"reward": value, "valid": int(report.valid_submission)}
    folder = Path(log)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "report.json").write_text(report.model_dump_json(indent=1), encoding="utf-8")
    (folder / "reward.json").write_text(json.dumps(reward), encoding="utf-8")
    print(report.message or "The submission is valid.")


if __name__ == "__main__":
    main(*sys.argv[1:])
