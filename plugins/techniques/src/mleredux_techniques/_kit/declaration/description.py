"""The description of a technique task: question, data, the document's format with an example, and scoring."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from mleredux.errors import TaskBroken

from mleredux_techniques._kit.data.discovery import has_table
from mleredux_techniques._kit.judging.reference import NAMES

if TYPE_CHECKING:
    from mleredux_techniques._kit.declaration.spec import TechniqueSpec, TechniqueTask

_DATA = """\
## Data

`question.json` names the training table, the test table (without the target), the target, the columns that identify
rows (`ids`) and the features: the columns that both tables have, except ids and targets. Facts refer to the training
table as read by pandas.read_csv with its defaults. Missing values are what it treats as missing: empty cells, and texts
such as NA, N/A, NaN, None or null. In JSON records and Parquet files the same texts are missing, also empty ones,
besides nulls and fields that a record lacks. Only the first 1,000,000 rows of a table are used. Rows without a target
are ignored.
{planted}"""

_PLANTED = """
The tables were generated from those of the competition described below: columns may have been added, changed or
removed, and rows removed, added or split differently. Some changes matter for the question, others are deliberately
harmless. The changes are known and are the truth. Files other than {files} are not provided.
"""

_PICTURES = """
The images in `train` and `test`, named by their rows' ids, were drawn for this question: they resemble those of the
competition described below, and the table next to them was generated.
"""

_IMAGES = """
If a column of the tables names images among the files, `question.json` names two tables of (a sample of) the rows, in
which further columns describe each image: `image bytes` (of the file), `image width` and `image height`, `image format`
(of file and colors), `image metadata` (camera, software and texts that the file contains), the means `image red`,
`image green` and `image blue` from 0 to 1, `image contrast` (the standard deviation of gray), and `image pixel ROW
COLUMN`, means of gray in 8 by 8 parts. All facts and recommendations are about these tables and their columns. Images
are nearly equal if these 64 pixels are, whatever their size and format. Columns that are alike for all images are not
there.
"""

_FORM = """\
## What to write

`{file}`: one JSON object (at most 1 MiB; no NaN, no duplicate fields, no fields that are not named here) according to
this JSON schema:

```json
{schema}
```

A well-formed example, for other data:

```json
{example}
```

A document that contradicts itself is rejected; validation reports it and names the field.
"""

_SCORING = """\
## Scoring

score = facts · (0.3 + 0.7 · efficacy), between 0 and 1, higher is better.

**Facts** is the weighted mean of the correctness of:

{tolerances}

Next to judgements that the data decides, counts have at most a quarter of the weight.

**Efficacy**: your recommendation is executed on this data and compared with a naive choice (0, or worse) and a strong
one (1, or better). {efficacy} If naive and strong do not differ significantly on this data, score = facts, and its name
in the report is `facts` instead of `facts × efficacy`; if the data decides no judgement either, so that only counts can
be scored, score = 0.5 · facts (`counts`).

Free text is stored and not scored.
"""

_MEASURE = (
    "The measure is the competition's own metric, {metric} ({better} is better), on held-out training rows, of the "
    f"predictions that it asks for by {NAMES}."
)

_BACKGROUND = """\
## Origin of the data

The data is that of a competition. Its own description is below; what it states about submissions and evaluation does
not apply here.

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
    better = "higher" if base.direction == "maximize" else "lower"
    planted, described = "planted" in task.tags, technique.images and not has_table(base.base or base)
    data = _PLANTED.format(files="the tables and images" if described else "the two tables") if planted else ""
    data += f"{_PICTURES * planted}{_IMAGES}" if described else ""
    efficacy = efficacy.replace("{measure}", _MEASURE.format(metric=base.metric.id, better=better))
    return "\n".join(
        [
            question.rstrip() + "\n",
            _DATA.format(planted=data),
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
