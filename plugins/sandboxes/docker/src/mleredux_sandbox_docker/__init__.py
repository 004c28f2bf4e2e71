"""Runs agents in containers that never see the answers.

| modules | contents |
|---|---|
| `sandbox` | the sandbox `docker` itself |
| `engine`, `doctor` | the address of the Docker engine, and the connection to it; its checks in `doctor` |
| `building`, `steps` | images: local, pulled or built; build steps in limited containers |
| `container`, `handle` | settings of an agent's container; the started container |
| `transcript` | the engine's output stream, copied to the run's log without gaps or repeats |
"""

from __future__ import annotations

from mleredux.plugin import Ref, hookimpl

mleredux_contract = 2


@hookimpl
def mleredux_register_sandboxes() -> list[Ref]:
    """Return the sandbox `docker`."""
    return [Ref("docker", "mleredux_sandbox_docker.sandbox:sandbox")]
