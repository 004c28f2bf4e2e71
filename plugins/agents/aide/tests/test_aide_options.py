"""What the options make of the agent, and which are refused."""

from __future__ import annotations

from typing import Any

import pytest
from mleredux._core.plugins import current
from mleredux.errors import MlereduxError


def test_libraries_decide_what_is_installed() -> None:
    lean = current().agent("aide", {"libraries": "none"}).build
    rich = current().agent("aide", {"libraries": "tabular; statsmodels==0.14.5"}).build
    assert set(lean.python) < set(rich.python)
    assert {"scikit-learn==1.9.1", "lightgbm==4.7.0", "statsmodels==0.14.5"} <= set(rich.python) - set(lean.python)
    assert (lean.debian, rich.debian) == ((), ("libgomp1",))
    assert lean.python_alone == rich.python_alone == ("aideml==0.2.2",)


def test_the_defaults_are_what_is_built_without_options() -> None:
    assert current().agent("aide", {}).build == current().agent("aide").build


def test_no_temperature_may_be_asked_for() -> None:
    current().agent("aide", {"code_temperature": None})


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"steps": 0}, "steps=0: input should be greater than or equal to 1"),
        ({"steps": "ten"}, "steps='ten': input should be a valid integer"),
        ({"debug_prob": 2}, "debug_prob=2: input should be less than or equal to 1"),
        ({"code_model": ""}, "code_model='': string should have at least 1 character"),
        ({"libraries": "pandas"}, "'pandas' is neither a set of libraries"),
        ({"colour": 1}, "has no option colour"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(MlereduxError) as caught:
        current().agent("aide", options)
    assert sentence in caught.value.message
