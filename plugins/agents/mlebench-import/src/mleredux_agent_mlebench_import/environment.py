"""A stage `mlebench-env`, derived from our base image, that replaces the base image of agents' Dockerfiles."""

from __future__ import annotations

import base64
import re
from importlib import resources

from mleredux_agents import Libraries

ENV_IMAGE = "mlebench-env"
WORKDIR_NOTE = "/opt/mleredux/workdir"
_FROM = re.compile(r"^\s*FROM\s", re.IGNORECASE | re.MULTILINE)
_DEBIAN = ("ca-certificates", "curl", "gettext-base", "git", "procps", "unzip", "wget")

_STAGE = """\
FROM {base} AS mlebench-env
USER root
RUN apt-get update && apt-get install -y --no-install-recommends {debian} \\
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/*
RUN python3 -m venv --system-site-packages --without-pip /opt/conda \\
 && mkdir -p /opt/conda/etc/profile.d /opt/mleredux \\
 && (id nonroot >/dev/null 2>&1 || useradd --create-home nonroot) && mkdir -p /home/data /home/submission \\
 && touch /home/instructions.txt /home/instructions_obfuscated.txt /home/validate_submission.sh
{files}
ENV PATH=/opt/conda/bin:$PATH CONDA_EXE=/opt/conda/bin/conda
RUN conda create -y -n agent && (test -z "{python}" || conda run -n agent pip install --no-cache-dir {python})
WORKDIR /home
"""
_READY = """\
FROM {base} AS mlebench-env
"""
_END = """
USER root
RUN mkdir -p /opt/mleredux && pwd > {note}
"""
_FILE = "RUN echo {content} | base64 -d > {path} && chmod 755 {path}"
_FILES = {
    "conda.sh": "/opt/conda/bin/conda",
    "activate.sh": "/opt/conda/bin/activate",
    "profile.sh": "/opt/conda/etc/profile.d/conda.sh",
}


def dockerfile(own: str, libraries: Libraries, env_image: str | None = None) -> str:
    """Return an agent's Dockerfile, preceded by the stage that it builds on.

    Args:
        own: The agent's own Dockerfile, which is not changed.
        libraries: Libraries in the environment `agent`.
        env_image: An existing image to use as `mlebench-env`.
    """
    first = _FROM.search(own)
    head, rest = (own[: first.start()], own[first.start() :]) if first else ("", own)
    if env_image:
        stage = _READY.format(base=env_image)
    else:
        stage = _STAGE.format(
            base="${BASE_IMAGE}",
            debian=" ".join((*_DEBIAN, *libraries.debian)),
            files="\n".join(_FILE.format(content=_encoded(name), path=path) for name, path in _FILES.items()),
            python=" ".join(f"'{line}'" for line in libraries.python),
        )
        head = f"ARG BASE_IMAGE\n{head}"
    return f"{head}{stage}\n{rest.rstrip()}\n{_END.format(note=WORKDIR_NOTE)}"


def _encoded(name: str) -> str:
    content = resources.files("mleredux_agent_mlebench_import").joinpath("inside", name).read_bytes()
    return base64.b64encode(content).decode()
