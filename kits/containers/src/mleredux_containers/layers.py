"""Split a build into an image with installed packages and a layer of files on top, so that editing a file rebuilds only
the latter.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from mleredux_containers.dockerfile import instructions, listed
from mleredux_containers.recipe import Recipe

_STILL = frozenset({"WORKDIR", "COPY", "ENV", "LABEL", "USER", "CMD", "ENTRYPOINT", "EXPOSE"})
"""Instructions that execute nothing."""


def split(plan: Recipe) -> tuple[Recipe, str] | None:
    """Return the recipe up to its last step, with only the files that it copies by name, and the remaining lines.

    Returns:
        None if the parts depend on each other, because of stages, arguments, or folders that are copied before a step.
    """
    steps = list(instructions(plan.text))
    words = [word for word, _ in steps]
    if plan.generated or words.count("FROM") != 1 or "RUN" not in words:
        return None
    last = max(number for number, word in enumerate(words) if word == "RUN")
    below, above = steps[: last + 1], steps[last + 1 :]
    if not above or any(word not in _STILL or "$" in rest or "--from" in rest for word, rest in above):
        return None
    files: dict[str, Path | bytes] = {}
    for word, rest in below:
        if word == "ADD" or (word in ("RUN", "COPY") and rest.startswith("--")):
            return None
        for name in _sources(rest) if word == "COPY" else ():
            source = plan.files.get(name)
            if source is None or name == plan.dockerfile:
                return None
            if isinstance(source, Path) and (source.is_symlink() or not source.is_file()):
                return None
            files[name] = source
    files[plan.dockerfile] = "".join(f"{word} {rest}\n" for word, rest in below).encode()
    return replace(plan, files=files), "".join(f"{word} {rest}\n" for word, rest in above)


def on_layers(plan: Recipe, image: str, lines: str) -> Recipe:
    """Return the recipe of the remaining lines of `split`, on top of the image of the first part."""
    files = {**plan.files, plan.dockerfile: f"FROM {image}\n{lines}".encode()}
    return replace(plan, files=files, network=False, shared=())


def _sources(rest: str) -> list[str]:
    """Return the sources of a COPY instruction."""
    return [word.removeprefix("./") for word in (listed(rest) or rest.split())[:-1]]
