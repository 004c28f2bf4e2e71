"""The published JSON schema and the models agree on the published examples."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[3] / "docs" / "reference"
EXAMPLES = sorted((DOCS / "examples").glob("rollout-*.json"))


def _schema() -> dict[str, object]:
    return json.loads((DOCS / "schemas" / "rollout.schema.json").read_bytes())


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 2


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_are_valid_by_the_schema_alone(path: Path) -> None:
    import jsonschema

    jsonschema.validate(json.loads(path.read_bytes()), _schema())


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_a_field_that_does_not_exist_is_refused(path: Path) -> None:
    import jsonschema

    document = {**json.loads(path.read_bytes()), "invented": 1}
    with pytest.raises(jsonschema.ValidationError, match="invented"):
        jsonschema.validate(document, _schema())
