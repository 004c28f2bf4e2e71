"""The client and what it needs: light to install, light to import, and documented whole."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import mleredux_client as sdk
import pytest

PACKAGE = Path(__file__).parents[1]
DOCS = (PACKAGE.parents[2] / "docs/reference/client.md").read_text()
NEEDED = {"httpx", "pathspec", "httpcore", "h11", "anyio", "certifi", "idna", "sniffio"} | {
    "pydantic",
    "pydantic-core",
    "annotated-types",
    "typing-extensions",
    "typing-inspection",
}
CORE = {"mleredux", "mleredux-grading", "mleredux-http-api", "mleredux-rollout", "click", "importlib-metadata"}
CORE |= {"zipp", "pluggy", "psutil", "rich", "lazy-importer", "markdown-it-py", "mdurl", "pygments"}
"""mleredux, of which the client imports the models alone, with three kits, and what they need."""
LOOK = """
import importlib.metadata, json, sys, time
begun = time.process_time()
import mleredux_client
client = mleredux_client.Client("http://127.0.0.1:1", "t", retries=0)
took = time.process_time() - begun
try:
    client.me()
except mleredux_client.Unreachable as error:
    told = str(error)
try:
    mleredux_client.Listing().to_dataframe()
except mleredux_client.UsageError as error:
    frame = str(error)
heavy = [name for name in ("mleredux._core", "pluggy", "psutil", "pandas", "numpy") if name in sys.modules]
installed = [found.name for found in importlib.metadata.distributions()]
print(json.dumps({"took": took, "told": told, "frame": frame, "heavy": heavy, "installed": installed}))
"""


@pytest.mark.slow
def test_a_clean_environment_gets_httpx_pathspec_mleredux_and_what_they_need(tmp_path: Path) -> None:
    uv = shutil.which("uv") or str(Path(sys.executable).with_name("uv"))
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("MLEREDUX_", "PYTHON", "VIRTUAL"))
    }
    python = tmp_path / "env" / "bin" / "python"
    for command in (
        [uv, "venv", "--quiet", "--python", sys.executable, str(tmp_path / "env")],
        [
            *(uv, "pip", "install", "--quiet", "--python", str(python), str(PACKAGE)),
            *(str(PACKAGE.parents[2] / name) for name in ("core", "kits/grading", "kits/http-api", "kits/rollout")),
        ],
    ):
        done = subprocess.run(command, capture_output=True, text=True, env=kept, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    looks = []
    for _ in range(3):  # the first time, Python compiles
        ended = subprocess.run([python, "-c", LOOK], capture_output=True, text=True, env=kept, cwd=tmp_path)
        assert ended.returncode == 0, ended.stderr
        looks.append(json.loads(ended.stdout))
    found = looks[-1]
    names = {name.lower().replace("_", "-") for name in found["installed"]}
    assert "mleredux-client" in names and names - {"mleredux-client"} <= NEEDED | CORE
    assert found["heavy"] == []
    assert found["told"].startswith("http://127.0.0.1:1 can't be reached")
    assert found["frame"] == "pandas is not installed. Install it: `pip install 'mleredux-client[dataframe]'`."
    assert min(look["took"] for look in looks) < 1.0, "0.3 s where nothing else works"


def test_importing_the_client_brings_nothing_heavy() -> None:
    heavy = {"mleredux._core", "mleredux.plugin", "mleredux.hookspecs", "pluggy", "psutil", "pandas", "numpy"}
    code = f"import sys, mleredux_client; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr


def test_everything_public_is_documented() -> None:
    missing = [
        f"{kind.__name__}.{name}"
        for kind in (sdk.Client, sdk.Run, sdk.Artifacts, sdk.ArtifactFile, sdk.Experiment, sdk.Pager)
        for name in dir(kind)
        if not name.startswith("_") and not re.search(rf"[.`]{name}\b", DOCS)
    ]
    assert missing == []


def test_every_error_is_documented() -> None:
    errors = [name for name in sdk.__all__ if isinstance(getattr(sdk, name), type)]
    assert [
        name for name in errors if issubclass(getattr(sdk, name), sdk.MlereduxApiError) and f"`{name}`" not in DOCS
    ] == ["RangeNotSatisfiable"]


@pytest.mark.parametrize(("noun", "kind"), [("client", sdk.Client), ("run", sdk.Run), ("experiment", sdk.Experiment)])
def test_the_documents_name_only_what_there_is(noun: str, kind: type) -> None:
    named = set(re.findall(rf"\b{noun}\.([a-z_]+)", DOCS)) - {"md", "zip"}
    assert len(named) >= 2
    assert [name for name in sorted(named) if not hasattr(kind, name)] == []


def test_the_code_in_the_documents_is_python() -> None:
    blocks = re.findall(r"```python\n(.*?)```", DOCS, re.DOTALL)
    assert len(blocks) >= 5
    for block in blocks:
        compile(block, "client.md", "exec")
