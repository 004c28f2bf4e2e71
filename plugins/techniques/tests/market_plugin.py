"""A second competition, and an agent that follows findings about imbalance: they help it on `shop`, and harm on
`market`."""

from __future__ import annotations

from pathlib import Path

from mleredux.hookspecs import hookimpl
from mleredux.models import Agent, Limits, Task
from shop_plugin import prepare, shop


def prepare_market(raw: Path, public: Path, private: Path) -> None:
    """The same data, but its sample submission has ones."""
    prepare(raw, public, private)
    sample = public / "sample_submission.csv"
    sample.write_text(sample.read_text().replace(",0\n", ",1\n"))


market = shop.model_copy(update={"id": "market", "title": "Returned orders of a market", "prepare": prepare_market})
HEEDFUL = """
import csv
import os
from pathlib import Path

data, task = Path(os.environ["MLEREDUX_DATA_DIR"]), Path(os.environ["MLEREDUX_TASK_DIR"])
known = (task / "description.md").read_text()
for page in Path(os.environ["MLEREDUX_SKILLS_DIR"]).rglob("*.md"):
    known += page.read_text()
    print("skill", page.read_text().partition("# Findings about ")[2].partition(chr(10))[0])
rows = list(csv.DictReader((data / "sample_submission.csv").open()))
sign = -1 if rows[0]["returned"] == "1" else 1
price = {row["order"]: float(row["price"]) for row in csv.DictReader((data / "test.csv").open())}
with open(os.environ["MLEREDUX_SUBMISSION"], "w") as file:
    print("order,returned", file=file)
    for row in rows:
        heard = "## Class imbalance" in known
        print(row["order"], sign * price[row["order"]] if heard else 0, sep=",", file=file)
"""
heedful = Agent(
    id="heedful",
    title="Follows findings about imbalance; for tests",
    command=("python", "-c", HEEDFUL),
    tools=("skill",),
    limits=Limits(time_limit=60, memory_mb=512),
)


@hookimpl
def mleredux_register_tasks() -> list[Task]:
    return [market]


@hookimpl
def mleredux_register_agents() -> list[Agent]:
    return [heedful]
