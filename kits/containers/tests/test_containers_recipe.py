"""What a build's fields become in the Dockerfile that is made of them; names never become shell commands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from mleredux.errors import BuildFailed
from mleredux.models import Build
from mleredux_containers.recipe import generated


def test_packages_of_debian_come_into_the_final_image_and_the_rest_from_the_installing_stage() -> None:
    build = Build(python=("a==1",), python_alone=("b==2",), debian=("libgomp1",), npm=("@scope/tool@1.2.3",))
    recipe = generated(build)
    installing, _, final = recipe.text.partition("\n\nFROM")
    assert "--no-deps" in installing and recipe.files["requirements-alone.txt"] == b"b==2\n"
    assert "npm install --global" in installing and "@scope/tool@1.2.3" in installing
    assert "apt-get install -y --no-install-recommends libgomp1 " in final
    assert "PATH=/opt/npm/bin:$PATH" in final and "npm install" not in final


def test_an_image_without_requirements_has_one_stage() -> None:
    text = generated(Build(debian=("git=1:2.47.3-0+deb13u1",))).text
    assert text.count("FROM") == 1 and "git=1:2.47.3-0+deb13u1" in text and "npm" not in text


def test_an_npm_package_of_this_machine_is_copied_without_what_it_installed(tmp_path: Path) -> None:
    tool = tmp_path / "tool"
    (tool / "node_modules" / "other").mkdir(parents=True)
    (tool / "node_modules" / "other" / "index.js").write_text("")
    (tool / "package.json").write_text(json.dumps({"name": "tool", "version": "1.0.0"}))
    (tmp_path / "packed.tgz").write_bytes(b"")
    recipe = generated(Build(npm=(str(tool), str(tmp_path / "packed.tgz"))))
    copied = sorted(name for name in recipe.files if name.startswith("npm/") and not name.endswith(".keep"))
    assert [name.partition("/")[2].partition("/")[2] or name.rpartition(".")[2] for name in copied] in (
        ["package.json", "tgz"],
        ["tgz", "package.json"],
    )
    assert all(f"/tmp/{name.removesuffix('/package.json')}" in recipe.text for name in copied)


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        ({"debian": ("git; curl evil",)}, "is not a valid name for a Debian package"),
        ({"npm": ("tool && curl evil",)}, "is not a valid name for an npm package"),
        ({"npm": ("--unsafe-perm",)}, "is not a valid name for an npm package"),
        ({"npm": ("tool\nRUN evil",)}, "is not a valid name for an npm package"),
        ({"npm": ("/nowhere/tool",)}, "neither a packed npm package"),
    ],
)
def test_what_is_no_name_is_refused(build: dict[str, tuple[str, ...]], sentence: str) -> None:
    with pytest.raises(BuildFailed, match=sentence):
        generated(Build(**build))
