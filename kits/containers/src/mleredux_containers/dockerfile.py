"""Parse a Dockerfile before it is built, to find the external images that it uses."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from mleredux.errors import AgentBroken

BASE_ARGUMENT = "BASE_IMAGE"
_DIRECTIVE = re.compile(r"\s*#\s*(syntax|escape)\s*=", re.IGNORECASE)
_FLAG = re.compile(r"--(\w[\w-]*)(?:=(\S*))?$")
_VARIABLE = re.compile(r"\$(?:\{(\w+)(?::-([^}]*))?\}|(\w+))")
_REMOTE = re.compile(r"[a-z][a-z0-9+.-]*://|git@", re.IGNORECASE)


def images_of(text: str) -> list[str]:
    """Return the images in `FROM`, `COPY --from` and mounts, except the Dockerfile's own stages and `BASE_IMAGE`.

    Raises:
        AgentBroken: An image is known only during the build, or the engine itself would have to fetch something.
    """
    arguments: dict[str, str] = {}
    stages: set[str] = set()
    images: dict[str, None] = {}

    def note(name: str, instruction: str) -> None:
        image = filled(name, arguments)
        if image is None:
            raise _bad(f"{instruction} {name}: its variable has no value before the build", "Use a literal name.")
        if image and image.lower() not in stages and not image.isdecimal() and image != "scratch":
            images[image] = None

    for word, rest in instructions(text):
        if word == "ONBUILD":
            raise _bad("ONBUILD", "Write the instruction itself.")
        flags, words = _flags(rest)
        if word == "ARG" and not stages:
            for item in words:
                name, equals, value = item.partition("=")
                if equals and name != BASE_ARGUMENT:
                    arguments[name] = value.strip("\"'")
        elif word == "FROM" and words:
            note(words[0], "FROM")
            stages.add(words[2].lower() if len(words) > 2 and words[1].upper() == "AS" else str(len(stages)))
        elif word in ("ADD", "COPY"):
            for name in flags.get("from", ()):
                note(name, f"{word} --from")
            if word == "ADD" and any(_REMOTE.match(item.strip("[]\"',")) or "$" in item for item in words[:-1]):
                raise _bad(f"ADD {' '.join(words)}: the engine would fetch it", "Fetch it in a RUN instruction.")
        elif word == "RUN":
            if flags.keys() - {"mount"}:
                raise _bad(f"RUN --{sorted(flags.keys() - {'mount'})[0]}", "Remove this option.")
            for mount in flags.get("mount", ()):
                facts = dict(part.partition("=")[::2] for part in mount.split(","))
                if facts.get("type", "bind") not in ("bind", "cache", "tmpfs") or "$" in mount:
                    raise _bad(f"RUN --mount={mount}", "Use a mount of type cache or tmpfs.")
                if "from" in facts:
                    note(facts["from"], "RUN --mount from")
    return list(images)


def instructions(text: str) -> Iterator[tuple[str, str]]:
    """Yield the upper-case name of each instruction and the rest of its line, with continued lines joined.

    Raises:
        AgentBroken: The Dockerfile contains a parser directive or a here-document.
    """
    whole = ""
    for line in text.removeprefix("\ufeff").split("\n"):
        line = line.rstrip("\r")
        if _DIRECTIVE.match(line):
            raise _bad(line.strip(), "Remove this directive.")
        if line.lstrip().startswith("#") or (whole and not line.strip()):
            continue
        joined = re.sub(r"\\[ \t]*$", "", line)
        whole += joined
        if joined != line:
            continue
        if words := whole.split(None, 1):
            if "<<" in whole:
                raise _bad(whole.strip()[:80], "Do not use here-documents.")
            yield words[0].upper(), words[1] if len(words) > 1 else ""
        whole = ""
    if words := whole.split(None, 1):
        yield words[0].upper(), words[1] if len(words) > 1 else ""


def listed(arguments: str) -> list[str]:
    """Return the words of an instruction in JSON form; an empty list for other forms."""
    try:
        words = json.loads(arguments)
    except ValueError:
        return []
    return [str(word) for word in words] if isinstance(words, list) else []


def _flags(rest: str) -> tuple[dict[str, list[str]], list[str]]:
    words, flags = rest.split(), dict[str, list[str]]()
    while words and (match := _FLAG.match(words[0])):
        flags.setdefault(match[1].lower(), []).append((match[2] or "").strip("\"'"))
        words.pop(0)
    return flags, words


def filled(name: str, arguments: dict[str, str]) -> str | None:
    """Return a word of a Dockerfile with its variables replaced; empty for the base image, None if a value is
    missing.
    """
    name = name.strip("\"'")
    if name in (f"${BASE_ARGUMENT}", f"${{{BASE_ARGUMENT}}}"):
        return ""
    missing = False

    def value(match: re.Match[str]) -> str:
        nonlocal missing
        argument = arguments.get(match[1] or match[3], match[2])
        missing = missing or argument is None
        return argument or ""

    filled = _VARIABLE.sub(value, name)
    return None if missing or "$" in filled or "\\" in filled else filled


def _bad(instruction: str, hint: str) -> AgentBroken:
    return AgentBroken(f"The Dockerfile has `{instruction[:200]}`, which agent repositories can't use.", hint=hint)
