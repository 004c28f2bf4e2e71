"""The plugin keeps to the contract, and listing it imports nothing heavy."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import mleredux_testing as testing
import pytest
from mleredux_techniques import kit
from technique_documents import TECHNIQUES


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder: planted instances of the base are prepared once for all techniques."""
    return tmp_path_factory.mktemp("conformance")


# On `wine`, good advice is decided at once; on the toy task, no attempt decides it under accuracy, and all are drawn.
@pytest.mark.parametrize("check", testing.checks("techniques", techniques={"base": "wine"}))
def test_conforms(check: Any, shared: Path) -> None:
    check(shared)


def test_every_technique_has_its_parts() -> None:
    assert len(TECHNIQUES) >= 6
    for name, technique in TECHNIQUES.items():
        assert technique.id == name == technique.folder.name
        assert (technique.folder / "description.md").is_file() and (technique.folder / "example.json").is_file()


def test_the_example_imports_nothing_but_the_public_kit() -> None:
    """And the kit has every name that it promises."""
    example = Path(__file__).parents[3] / "examples" / "technique"
    lines = "".join(path.read_text(encoding="utf-8") for path in example.rglob("*.py"))
    assert set(re.findall(r"mleredux_techniques[.\w]*", lines)) == {"mleredux_techniques.kit"}
    used = re.findall(r"from mleredux_techniques\.kit import \(([^)]*)\)", lines)
    assert used
    assert not {name.strip() for names in used for name in names.split(",")} - {"", *vars(kit)}


def test_listing_imports_no_pandas() -> None:
    program = (
        "import sys; from mleredux._core.plugins import current; found = current().entries('techniques'); "
        "assert {'cv', 'leakage'} <= set(found); assert not {'pandas', 'numpy', 'sklearn'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
