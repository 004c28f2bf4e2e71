"""Create runnable agents from references."""

from __future__ import annotations

import shutil
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from mleredux.models import AgentFolder, Smoke
from mleredux.plugin import Scheme
from mleredux.plugin.agent import Agent, Build, Limits
from mleredux_containers import images_of

from mleredux_agent_repo.history import history
from mleredux_agent_repo.layers import dockerfile
from mleredux_agent_repo.manifest import MANIFEST, Manifest, read_manifest
from mleredux_agent_repo.references import SCHEME, parse
from mleredux_agent_repo.scripts import find_script, make_script
from mleredux_agent_repo.sources import Source, get

AGENT_DIR = "/opt/agent"
_LIMITS = {"memory": "memory_mb", "disk": "disk_mb"}
_GENERATED = "mleredux.Dockerfile"


def agent_of(reference: str) -> Agent:
    """Return the agent of a reference, with its source pinned and cached.

    Raises:
        MlereduxError: The source is not allowed or can't be fetched, or its manifest is invalid.
    """
    source = get(parse(reference))
    if source.script is None and (source.folder / MANIFEST).exists():
        return make_agent(source, read_manifest(source.folder))
    script = source.script or find_script(source.folder, reference.removeprefix(SCHEME))
    return make_script(
        script,
        source.commit,
        source.reference,
        lambda needed: _build_of(source, needed),
        remote=source.remote,
    ).model_copy(update={"remarks": source.remarks})


def make_agent(source: Source, manifest: Manifest) -> Agent:
    """Return the agent that a manifest describes."""
    about, build, environment = manifest.agent, manifest.build, manifest.environment
    text = (source.folder / build.dockerfile).read_text("utf-8", "replace") if build.dockerfile else ""
    image_build = Build(context=source.folder, dockerfile=build.dockerfile) if build.dockerfile else None
    image_build = image_build or _build_of(source, build.python)
    # the folder is for sandboxes that build no images, unless a Dockerfile defines the agent's environment
    folder = AgentFolder(path=source.folder, place=AGENT_DIR, python=tuple(build.python))
    declared = manifest.limits.model_dump(exclude_none=True)
    limits = {_LIMITS.get(name, name): value for name, value in declared.items()}
    return Agent(
        id=about.id,
        version=f"{about.version} ({source.commit[:12]})",
        title=about.title or about.id,
        command=tuple(about.command),
        build=image_build.model_copy(
            update={
                "folder": folder if build.dockerfile is None else None,
                "writable_root": build.writable_root,
                "time_limit": build.time_limit,
                "max_image_mb": build.max_image,
                "hosts": tuple(manifest.network.build),
                "images": tuple(images_of(text)),
            }
        ),
        env={"MLEREDUX_AGENT_DIR": AGENT_DIR, **environment.set},
        secrets=tuple(dict.fromkeys((*environment.passed, *environment.secrets))),
        limits=Limits(**limits),
        network=about.network,
        hosts=tuple(manifest.network.run),
        options=manifest.options,
        presets=manifest.presets,
        isolated=True,
        unisolated="named" if source.remote else "fallback",
        rollout_reader=partial(_read_logs, manifest.logs.path, manifest.logs.format) if manifest.logs else None,
        verify=tuple(manifest.verify.command),
        smoke=Smoke(task=manifest.smoke.task, time_limit=manifest.smoke.time_limit, options=manifest.smoke.options),
        reference=source.reference,
        remarks=source.remarks,
        tags=("repo",),
        tools=tuple(about.tools),
    )


def _build_of(source: Source, requirements: list[str]) -> Build:
    """Return the build of an image with the agent's folder and requirements, from a generated Dockerfile."""
    text, shared = dockerfile(source.folder, requirements, AGENT_DIR)
    return Build(context=_with_dockerfile(source, text), dockerfile=_GENERATED, shared_steps=shared)


def _with_dockerfile(source: Source, text: str) -> Path:
    """Return a copy of the agent's folder with a generated Dockerfile, next to the original in the cache."""
    place = source.root.with_name(f"{source.root.name}-{len(source.folder.relative_to(source.root).parts)}-built")
    target = place / source.folder.relative_to(source.root)
    written = (target / _GENERATED).is_file() and not (target / _GENERATED).is_symlink()
    if not written or (target / _GENERATED).read_text(encoding="utf-8") != text:
        with tempfile.TemporaryDirectory(prefix=".building-", dir=place.parent) as scratch:
            tree = Path(scratch) / "tree"
            shutil.copytree(source.root, tree, symlinks=True)
            context = tree / source.folder.relative_to(source.root) / _GENERATED
            context.unlink(missing_ok=True)  # a link with that name would point to another file
            context.write_text(text, encoding="utf-8")
            shutil.rmtree(place, ignore_errors=True)
            tree.rename(place)
    return target


def _read_logs(path: str, form: str, output: Path) -> Any:
    """Return the rollout of native logs: a document in ATIF, or logs in the format of another agent's reader."""
    from mleredux.plugin.command import current
    from mleredux_rollout import parse_rollout, read_below

    if form == "atif":
        return parse_rollout(read_below(output, path)) if (output / path).is_file() else None
    reader = current().agent(form).rollout_reader
    return reader(output) if reader else None


AGENTS = Scheme(id="repo", title="Repositories, folders and scripts", find_agent=agent_of, list_history=history)
