"""`mleredux doctor` finds credentials of Kaggle, and shows none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from mleredux._core.checks import machine as doctor
from mleredux._core.data import DataStore
from mleredux._core.plugins import Catalogue
from mleredux._core.store import RunStore

KAGGLE_VARIABLES = ("KAGGLE_USERNAME", "KAGGLE_KEY", "KAGGLE_API_TOKEN", "KAGGLE_CONFIG_DIR")


@pytest.fixture
def no_kaggle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without credentials."""
    for name in KAGGLE_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    return home


def look(home: Path) -> dict[str, doctor.Diagnosis]:
    others = [plugin.name for plugin in Catalogue().plugins if plugin.name not in ("core", "mlebench")]
    found = doctor.diagnose(Catalogue(block=others), RunStore(home / "runs"), DataStore(home / "data"))
    return {f"{diagnosis.area}/{diagnosis.finding.name}": diagnosis for diagnosis in found}


def test_absent_kaggle_credentials_are_a_warning_with_a_remedy(no_kaggle: Path) -> None:
    credentials = look(no_kaggle)["kaggle/credentials"]
    assert credentials.level == "warning"
    assert "kaggle.com/settings" in (credentials.finding.remedy or "")


@pytest.mark.parametrize("name", ["kaggle.json", "access_token"])
def test_credentials_in_the_home_are_seen_and_never_shown(no_kaggle: Path, name: str) -> None:
    (no_kaggle / ".kaggle").mkdir()
    (no_kaggle / ".kaggle" / name).write_text("a-very-secret-key")
    found = look(no_kaggle)
    assert found["kaggle/credentials"].level == "ok"
    assert "a-very-secret-key" not in json.dumps([diagnosis.as_json() for diagnosis in found.values()])


@pytest.mark.parametrize(
    ("variables", "level"),
    [
        ({"KAGGLE_API_TOKEN": "secret"}, "ok"),
        ({"KAGGLE_USERNAME": "me", "KAGGLE_KEY": "secret"}, "ok"),
        ({"KAGGLE_USERNAME": "me"}, "warning"),
        ({"KAGGLE_CONFIG_DIR": "/does/not/exist"}, "warning"),
    ],
)
def test_credentials_in_the_environment_are_seen(
    no_kaggle: Path,
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    level: str,
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    found = look(no_kaggle)["kaggle/credentials"]
    assert found.level == level
    assert "secret" not in found.finding.message
