"""The manifest: every mistake is named, with the field and what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mleredux_testing as testing
import pytest
from mleredux_agent_repo.manifest import BadManifest, read_manifest

AGENT = '[agent]\nid = "x"\ncommand = ["python", "x.py"]\n'


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        (None, ["There is no mleredux-agent.toml"]),
        ("[agent", ["is not valid TOML"]),
        ("", ["agent: is missing"]),
        (AGENT + '[build]\ndockerfile = "D"\npython = ["."]\n', ["set only one of `dockerfile` and `python`"]),
        (AGENT + '[build]\ndockerfile = "../Dockerfile"\n', ["build.dockerfile", "must be inside"]),
        (AGENT + '[build]\ndockerfile = "Dockerfile"\n', ["names Dockerfile, which is missing"]),
        (AGENT + '[build]\npython = ["."]\n', ["names pyproject.toml, which is missing"]),
        (AGENT + '[build]\npython = ["--index-url http://evil x"]\n', ["is not a requirement; `-r FILE` is the only"]),
        (AGENT + '[build]\npython = []\ntime_limit = "soon"\n', ["build.time_limit", "'soon' is not a valid duration"]),
        (AGENT + '[build]\npython = []\n[limits]\nmemory = "lots"\n', ["limits.memory", "'lots' is not a valid size"]),
        (AGENT + "[build]\npython = []\n[limits]\ncpu = 2\n", ["limits.cpu: is not supported"]),
        (AGENT + '[build]\npython = []\n[environment]\nsecrets = ["A B"]\n', ["'A B' is not a valid variable name"]),
        (AGENT + '[build]\npython = []\n[environment]\npass = ["MLEREDUX_X"]\n', ["MLEREDUX_X is set by mleredux"]),
        (AGENT.replace('"x"', '"x y"') + "[build]\npython = []\n", ["agent.id"]),
        ('[agent]\nid = "x"\ncommand = []\n[build]\npython = []\n', ["agent.command"]),
    ],
)
def test_what_is_wrong_is_said(write_agent: Any, text: str | None, sentences: list[str]) -> None:
    folder = write_agent(**{"mleredux-agent.toml": text})
    with pytest.raises(BadManifest) as error:
        read_manifest(folder)
    assert [sentence for sentence in sentences if sentence not in str(error.value)] == []
    assert "Traceback" not in str(error.value) and error.value.hint


def test_a_manifest_that_is_a_link_or_huge_is_refused(write_agent: Any) -> None:
    folder = write_agent(**{"mleredux-agent.toml": "#" * (1 << 20)})
    with pytest.raises(BadManifest, match="is larger than"):
        read_manifest(folder)
    (folder / "mleredux-agent.toml").unlink()
    (folder / "mleredux-agent.toml").symlink_to("/etc/hostname")
    with pytest.raises(BadManifest, match="There is no"):
        read_manifest(folder)


def test_a_good_one_is_read_whole(write_agent: Any) -> None:
    manifest = read_manifest(write_agent())
    assert manifest.environment.secrets == ["TOY_TOKEN"] and manifest.build.time_limit == 1800
    assert manifest.smoke.task == "wine" and manifest.limits.memory == 512


@pytest.mark.parametrize("check", testing.checks("repo"))
def test_the_plugin_conforms(check: testing.Check, tmp_path: Path) -> None:
    check(tmp_path)
