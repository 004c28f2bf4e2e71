"""Started in the sandbox: `python runner.py KIND SUBMISSION [FD FD]`. Nothing that it does is trusted."""

import csv
import json
import os
import runpy
import sys
import zipfile


def main(kind: str, submission: str, *pipes: str) -> None:
    """Run a submission of a kind."""
    folder, entry = ".", submission
    if submission.endswith(".zip"):
        folder, entry = "program", "program/main.py"
        zipfile.ZipFile(submission).extractall(folder)
    sys.path.insert(0, os.path.abspath(folder))
    if kind == "model":
        predict(runpy.run_path(entry)["load"](os.path.abspath(folder)))
    elif kind == "policy":
        act(runpy.run_path(entry), *map(int, pipes))
    else:
        sys.argv = [entry, *(["inputs.csv", "predictions.csv"] if kind == "code" else [os.environ["PORT"]])]
        runpy.run_path(entry, run_name="__main__")


def predict(model) -> None:  # type: ignore[no-untyped-def]
    """Write the predictions of a model: for each row, a dictionary by column or the value of the only column."""
    with open("inputs.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    ids, targets = json.loads(os.environ["COLUMNS"])
    predictions = list(model.predict([dict(row) for row in rows]))
    if len(predictions) != len(rows):
        raise ValueError(f"predict returned {len(predictions)} predictions for {len(rows)} rows")
    with open("predictions.csv", "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*ids, *targets])
        for row, prediction in zip(rows, predictions, strict=True):
            values = prediction if isinstance(prediction, dict) else {targets[0]: prediction}
            writer.writerow([*(row[name] for name in ids), *(values[name] for name in targets)])


def act(program: dict, incoming: int, tell: int) -> None:  # type: ignore[type-arg]
    """Answer each observation, a line of JSON, with an action; an empty line starts an episode."""
    with os.fdopen(incoming, "rb") as observations, os.fdopen(tell, "wb") as answers:
        for line in observations:
            if line == b"\n":
                program.get("reset", lambda: None)()
                continue
            action = program["act"](json.loads(line))
            action = action.item() if hasattr(action, "item") else action
            answers.write(json.dumps(action).encode() + b"\n")
            answers.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
