"""The Dockerfile of agents that bring none: what seldom changes first; what is shared runs nothing of theirs."""

from __future__ import annotations

from pathlib import Path

import pytest
from mleredux_agent_repo.layers import dockerfile

PLACE = "/opt/agent"


def parts(folder: Path, *requirements: str) -> tuple[str, str, tuple[str, ...]]:
    """The Dockerfile before the agent's files are copied, and after; the shared steps."""
    text, shared = dockerfile(folder, list(requirements), PLACE)
    before, after = text.split(f"COPY . {PLACE}\n")
    assert all(f"RUN {step}\n" in before for step in shared)
    return before, after, shared


def test_names_and_files_of_names_are_installed_before_the_code(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("pandas>=2  # tables\n\nnumpy ; python_version > '3'\n")
    before, after, shared = parts(tmp_path, "lightgbm==4.5", "-r requirements.txt")
    assert after == ""
    (step,) = shared
    for name in ("lightgbm==4.5", "'pandas>=2'", "numpy"):
        assert name in step
    assert 'COPY ["requirements.txt", "/opt/requirements/0.txt"]' in before
    assert "install --no-cache-dir --disable-pip-version-check lightgbm==4.5 -r /opt/requirements/0.txt" in before


@pytest.mark.parametrize(
    "line",
    [
        "--index-url https://index.example.org/simple",
        "numpy @ https://example.org/numpy-2.0-py3-none-any.whl",
        "git+https://example.org/team/tool.git",
        "numpy==2.0 --hash=sha256:00",
        "--no-binary :all:",
    ],
)
def test_nothing_of_a_file_that_is_more_than_names_is_in_a_shared_step(tmp_path: Path, line: str) -> None:
    (tmp_path / "requirements.txt").write_text(f"pandas\n{line}\n")
    before, after, shared = parts(tmp_path, "-r requirements.txt")
    assert shared == () and "-r /opt/requirements/0.txt" in before and after == ""


@pytest.mark.parametrize("line", ["-r more.txt", "-c pins.txt", "-e .", "./lib", "--find-links wheels", "file:lib"])
def test_a_file_that_names_other_files_is_installed_after_the_code(tmp_path: Path, line: str) -> None:
    (tmp_path / "requirements.txt").write_text(f"pandas\n{line}\n")
    before, after, shared = parts(tmp_path, "-r requirements.txt")
    assert shared == () and "requirements" not in before and "-r requirements.txt" in after


def test_what_a_package_states_that_it_requires_is_installed_before_it(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "own"\ndependencies = ["pandas>=2"]\n[project.optional-dependencies]\nfast = ["numba"]\n'
        '[build-system]\nrequires = ["hatchling"]\n'
    )
    before, after, shared = parts(tmp_path, ".[fast]")
    for name in ("hatchling", "'pandas>=2'", "numba"):
        assert name in shared[0] and before.count(name) == 2
    assert "--no-build-isolation '.[fast]'" in after


def test_an_agent_without_requirements_shares_nothing(tmp_path: Path) -> None:
    _, after, shared = parts(tmp_path)
    assert shared == () and after == ""


def test_words_of_a_requirement_stay_one_word_of_the_shell(tmp_path: Path) -> None:
    before, after, shared = parts(
        tmp_path, "numpy; python_version > '3' $(touch /x)", "`touch /y`", "x @ https://h/$(z)"
    )
    assert shared == () and after == ""
    for word in ("$(touch /x)", "`touch /y`", "$(z)"):
        assert word not in before.replace("'\"'\"'", "").split("'")[::2]
