"""A plugin file with a task that takes no time and agents that do what agents should not; standard library only."""

from __future__ import annotations

import csv
import os
import time
from pathlib import Path

from mleredux import (
    Agent,
    Build,
    Competition,
    Grader,
    GradingInput,
    InvalidSubmission,
    Limits,
    Metric,
    Submission,
    Thresholds,
    hookimpl,
)
from mleredux.models import Smoke

ROWS = 100
HERE = Path(__file__).parent


def pause(name: str) -> None:
    """Wait in a stage while the test says so, and say that we are there."""
    gate = os.environ.get("TOY_GATE")
    if gate and (Path(gate) / name).exists():
        (Path(gate) / f"{name}.reached").touch()
        while (Path(gate) / name).exists():
            time.sleep(0.01)


def fetch(raw: Path) -> None:
    """Raw data."""
    (raw / "all.csv").write_text("id,x,y\n" + "".join(f"{i},{i % 7},{i % 2}\n" for i in range(ROWS)))


def prepare(raw: Path, public: Path, private: Path) -> None:
    """60 rows to learn from, 40 to predict."""
    with (raw / "all.csv").open() as file:
        rows = list(csv.DictReader(file))
    write(public / "train.csv", ["id", "x", "y"], rows[:60])
    pause("preparing")
    write(public / "test.csv", ["id", "x"], rows[60:])
    write(public / "sample_submission.csv", ["id", "y"], [{**row, "y": "0"} for row in rows[60:]])
    write(private / "answers.csv", ["id", "y"], rows[60:])


def write(path: Path, columns: list[str], rows: list[dict[str, str]]) -> None:
    """A CSV."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def score(given: GradingInput) -> float:
    """Share of right rows."""
    pause("grading")
    with (given.private / "answers.csv").open() as file:
        answers = {row["id"]: row["y"] for row in csv.DictReader(file)}
    with given.submission.open() as file:
        predicted = {row["id"]: row["y"] for row in csv.DictReader(file)}
    if (where := given.private / "say-process").exists():
        with Path(where.read_text()).open("a") as said:
            said.write(f"{os.getpid()}\n")
    if "-9" in predicted.values() and (given.private / "die").exists():
        os._exit(9)
    if set(answers) != set(predicted):
        raise InvalidSubmission("The ids differ from those of the sample submission.")
    return sum(answers[key] == predicted[key] for key in answers) / len(answers)


def odd(given: GradingInput) -> float:
    """A grader that does what the option `how` says, unless it gets the sample."""
    import odd_graders

    return float(odd_graders.score(given))


def task(name: str, grader: Grader, **more: object) -> Competition:
    """A toy task."""
    return Competition(
        id=name,
        title="Toy",
        description=HERE / "description.md",
        description_obfuscated=HERE / "description.md",
        prepare=prepare,
        fetch=fetch,
        submission=Submission(id_columns=("id",)),
        metric=Metric(grader=grader, options=more),
        direction="maximize",
        thresholds=Thresholds(gold=0.9, silver=0.8, bronze=0.7, median=0.4),
    )


ACCURACY = Grader(id="toy-accuracy", title="Accuracy", direction="maximize", score=score)
ODD = Grader(id="toy-odd", title="Odd", direction="maximize", score=odd)
ODDITIES = ("connects", "crashes", "hangs", "eats-memory", "nan", "infinite", "thirds", "orphans", "exits", "numpyish")


@hookimpl
def mleredux_register_tasks() -> list[Competition]:
    """One good task, and one for each odd grader."""
    return [task("toy", ACCURACY), *(task(f"toy-{how}", ODD, how=how) for how in ODDITIES)]


def agent(name: str, code: str, **more: object) -> Agent:
    """An agent of a few lines."""
    limits = Limits(cpus=1, memory_mb=512, grace=0.5).model_copy(update=dict(more.pop("limits", {})))  # type: ignore[call-overload]
    return Agent(id=name, title=name, command=("python", "-c", code), limits=limits, **more)  # type: ignore[arg-type]


@hookimpl
def mleredux_register_agents() -> list[Agent]:
    """Good ones, slow ones, greedy ones."""
    import toy_agents

    slow = agent("slow-build", toy_agents.COPY, build=Build(packages=("toy_slow.inner",)))
    smoked = agent("smoked", toy_agents.AGENTS["sleeper"][0], smoke=Smoke(task="toy"))
    return [slow, smoked, *(agent(name, code, **more) for name, (code, more) in toy_agents.AGENTS.items())]


@hookimpl
def mleredux_produce_artifacts(run: object) -> None:
    """Nothing, slowly."""
    pause("producing")
