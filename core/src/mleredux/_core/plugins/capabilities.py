"""Match the requirements of agents with the capabilities of sandboxes, with error messages for mismatches.

Standard library only, so that lists need not import plugins or pydantic.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from mleredux.errors import MlereduxError, NotFound

if TYPE_CHECKING:
    from mleredux.models import Agent

Limit = Literal["cpus", "memory", "processes"]
"""A limit that a sandbox may enforce."""
Source = Literal["interpreter", "python", "debian", "npm", "dockerfile", "image"]
"""How an environment is built: from the interpreter that runs mleredux and its packages, from Python requirements,
Debian packages or npm packages, from a folder with a Dockerfile, or as an existing image."""
_NETWORKS = ("none", "gateway", "open", "hosts")
_INSTALL = "Install a sandbox that does, e.g. `pip install mleredux-sandbox-docker`."
_WORDS = {
    "interpreter": "the environment of this interpreter",
    "python": "installing Python requirements",
    "debian": "installing Debian packages",
    "npm": "installing npm packages",
    "dockerfile": "building a Dockerfile",
    "image": "running a prebuilt image",
}


@dataclass(frozen=True)
class Capabilities:
    """The capabilities of a sandbox.

    Attributes:
        isolated: Whether it is a security boundary: an agent can reach neither the answers nor the host's network.
        builds: The sources from which it can build an agent's environment.
        networks: Network modes that it offers: `none`, `gateway`, `open`, and `hosts`, an enforced list of hosts, which
            requires a method `open_egress` (`mleredux_containers.FiltersHosts` has it).
        gpus: Whether it can assign GPUs to agents.
        writable_root: Whether it supports a writable root file system.
        enforces: Limits that the sandbox itself enforces: `cpus`, `memory`, `processes`. Of the others, memory and
            processes are measured while the agent runs, and CPUs are only declared.

    Raises:
        ValueError: A build source or network mode is unknown.
    """

    isolated: bool = False
    builds: tuple[Source, ...] = ("interpreter",)
    networks: tuple[str, ...] = _NETWORKS[:3]
    gpus: bool = False
    writable_root: bool = False
    enforces: tuple[Limit, ...] = ()

    def __post_init__(self) -> None:
        for kind, names, known in (
            ("build source", self.builds, _WORDS),
            ("network mode", self.networks, _NETWORKS),
            ("limit", self.enforces, get_args(Limit)),
        ):
            for name in names:
                if name not in known:
                    raise ValueError(f"{name!r} is not a valid {kind}; use one of {', '.join(known)}.")


@dataclass(frozen=True)
class Needs:
    """An agent's requirements for a sandbox, with the network and limits of a run. Fields are as in `Capabilities`."""

    isolated: bool = False
    """Whether the agent runs untrusted code, so that the sandbox must be a security boundary."""
    builds: tuple[Source, ...] = ()
    """The sources of environments, of which the sandbox must support at least one."""
    network: str = "none"
    """The network access of the run."""
    gpus: bool = False
    """Whether the run uses GPUs."""
    writable_root: bool = False
    """Whether the agent writes outside its folders."""
    hosts: bool = False
    """Whether the agent reaches named hosts through a logging proxy."""
    from_folder: bool = False
    """Whether a copy of the agent's folder replaces the image in sandboxes that build no images."""

    def lacking(self, has: Capabilities) -> list[str]:
        """Return the missing capabilities of a sandbox, in words; empty if it can run the agent."""
        # The requirements of an agent that is installed here are part of the interpreter's environment.
        builds = {*has.builds, *(["python"] if "interpreter" in has.builds else [])}
        if self.from_folder and "interpreter" in has.builds:
            builds.add("dockerfile")
        return [
            *(["isolation"] if self.isolated and not has.isolated else []),
            *(_WORDS[source] for source in self.builds if source not in builds),
            *([f"network mode {self.network}"] if self.network not in has.networks else []),
            *(["a list of allowed hosts"] if self.hosts and "hosts" not in has.networks else []),
            *(["GPUs"] if self.gpus and not has.gpus else []),
            *(["a writable root file system"] if self.writable_root and not has.writable_root else []),
        ]


def needs_of(agent: Agent, *, network: str | None = None, gpus: int | None = None, hosts: bool | None = None) -> Needs:
    """Derive an agent's requirements from its declaration.

    Args:
        agent: The agent with its options applied.
        network: The run's network mode; None: the agent's default.
        gpus: The run's number of GPUs; None: the agent's default.
        hosts: Whether the run has a list of allowed hosts; None: the agent's default.
    """
    build = agent.build
    python = build.python or build.python_alone
    packages: dict[Source, Any] = {"python": python, "debian": build.debian, "npm": build.npm}
    builds: list[Source] = ["image"] if build.image else ["dockerfile"] if build.context else []
    if not builds:
        builds = [source for source, names in packages.items() if names]
    return Needs(
        isolated=agent.isolated,
        builds=tuple(builds),
        network=network or agent.network,
        gpus=bool(agent.limits.gpus if gpus is None else gpus),
        writable_root=build.writable_root,
        hosts=bool(agent.hosts) if hosts is None else hosts,
        from_folder=build.folder is not None,
    )


def fitting(needs: Needs, installed: Mapping[str, Capabilities]) -> list[str]:
    """Return the sandboxes that meet the requirements, best first.

    Isolated sandboxes come last, and `process` comes first. Otherwise sandboxes are sorted by the number of limits that
    they enforce, by the number of sources that they build from, then by id.

    Args:
        needs: The requirements.
        installed: The capabilities of each installed sandbox, by id.
    """

    def rank(name: str) -> tuple[Any, ...]:
        has = installed[name]
        return has.isolated, name != "process", -len(has.enforces), -len(has.builds), name

    return sorted((name for name, has in installed.items() if not needs.lacking(has)), key=rank)


def choose(
    agent: Agent,
    installed: Mapping[str, Capabilities],
    requested: str | None = None,
    *,
    network: str | None = None,
    gpus: int | None = None,
    hosts: bool | None = None,
) -> str:
    """Choose the sandbox of a run: the requested one, or the best of those that meet the agent's requirements.

    Args:
        agent: The agent with its options applied.
        installed: The capabilities of each installed sandbox, by id.
        requested: The requested sandbox, which must be installed.
        network: The run's network mode; None: the agent's default.
        gpus: The run's number of GPUs; None: the agent's default.
        hosts: Whether the run has a list of allowed hosts; None: the agent's default.

    Raises:
        MlereduxError: The requested sandbox can't run the agent.
        NotFound: No sandbox can.
    """
    needs = needs_of(agent, network=network, gpus=gpus, hosts=hosts)
    good = fitting(needs, installed)
    if requested in good:
        return str(requested)
    if requested is not None:
        raise MlereduxError(
            f"Agent {agent.id} needs {all_of(needs.lacking(installed[requested]))}, which sandbox {requested} lacks.",
            hint=f"Use sandbox {' or '.join(good)}." if good else _INSTALL,
        )
    if not good:
        lacking = [f"{name} lacks {all_of(needs.lacking(has))}" for name, has in sorted(installed.items())]
        why = "; ".join(lacking) or "none is installed"
        raise NotFound(f"No installed sandbox can run agent {agent.id}: {why}.", hint=_INSTALL)
    return good[0]


def capabilities_from(summary: Mapping[str, Any]) -> Capabilities:
    """Read a sandbox's capabilities from its summary."""
    return Capabilities(**_fields(Capabilities, summary))


def needs_from(summary: Mapping[str, Any]) -> Needs:
    """Read an agent's requirements from its summary."""
    return Needs(**_fields(Needs, summary.get("needs")))


def _fields(kind: type[Any], shown: Mapping[str, Any] | None) -> dict[str, Any]:
    known = kind.__dataclass_fields__
    return {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in (shown or {}).items()
        if name in known
    }


def all_of(names: Iterable[str]) -> str:
    """Return names joined by commas, with `and` before the last one."""
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last
