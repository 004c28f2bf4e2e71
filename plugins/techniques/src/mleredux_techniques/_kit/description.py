"""The text of a technique task: the question, the data, the document's form with an example, and the scoring."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from mleredux.errors import TaskBroken

if TYPE_CHECKING:
    from mleredux_techniques._kit.spec import TechniqueSpec, TechniqueTask

_DATA = """\
## Data

`question.json` names the training table, the test table (without the target), the target, the columns that name rows
(`ids`) and the features: the columns that both tables have, beside ids and targets. Facts are of the training table as
pandas.read_csv reads it with its defaults. What is missing is what it says: empty cells, and texts such as NA, N/A,
NaN, None or null. In JSON records and Parquet files the same texts are missing, the empty one too, beside nulls and
fields that a record lacks. Of a table with more than 1,000,000 rows, the first 1,000,000 are the table. Rows without a
target are left out.
{planted}"""

_PLANTED = """
The tables were made by a generator from those of the competition described below: columns may have been added, changed
or removed, and rows left out, added or split anew. Some changes matter for the question, others are there to be
harmless. What was done is known and is the truth. Files beside the two tables are not given.
"""

_FORM = """\
## What to write

`{file}`: one JSON object (at most 1 MiB; no NaN, no field twice, no field that is not named here), as this JSON schema
says:

```json
{schema}
```

A well-formed example, of other data:

```json
{example}
```

A document that contradicts itself is refused; validation says so, and names the field.
"""

_SCORING = """\
## Scoring

score = facts · (0.5 + 0.5 · efficacy), between 0 and 1, higher is better.

**Facts** is the weighted mean of how right these are:

{tolerances}

**Efficacy**: your recommendation is carried out on these data with reference models, over several seeds, and compared
on held-out rows with a naive choice (0, or worse) and a strong one (1, or better). Where the data don't tell naive from
strong, score = facts. {efficacy}

Free text is kept and not scored.
"""

_BACKGROUND = """\
## Where the data are from

The data are those of a competition. What its own description, below, says of submissions and of evaluation does not
count here.

---

{text}
"""


def compose(task: TechniqueTask, *, obfuscated: bool = False) -> str:
    """The whole text for the agent.

    Raises:
        TaskBroken: A description is missing.
    """
    technique = task.technique
    question, efficacy = _read(task.description).split("\n## Efficacy\n")
    base = task.base
    if base is None:
        raise TaskBroken(f"Task {task.id} has no base.")
    return "\n".join(
        [
            question.rstrip() + "\n",
            _DATA.format(planted=_PLANTED if "planted" in task.tags else ""),
            _FORM.format(
                file=task.submission.file,
                schema=json.dumps(technique.document.model_json_schema(), indent=1),
                example=example(technique).strip(),
            ),
            _SCORING.format(tolerances=technique.tolerances, efficacy=" ".join(efficacy.split())),
            _BACKGROUND.format(text=base.describe(obfuscated=obfuscated)),
        ]
    )


def example(technique: TechniqueSpec) -> str:
    """The example of a document, of data that no task has."""
    return _read(technique.folder / "example.json")


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise TaskBroken(f"{path} can't be read: {error}.") from error
