"""Which of the caller's variables agents get, which values are masked, and which variables no agent gets."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import unquote

from mleredux._core.loans import caller_variables, masked_values
from mleredux.errors import MlereduxError
from mleredux.models.agent import Grants

if TYPE_CHECKING:
    from mleredux._core.plugins import Catalogue
    from mleredux.models import Agent, RunSpec

_OURS = "MLEREDUX_"


def is_foreign(agent: Agent) -> bool:
    """Return whether an agent was found by a reference, so that it gets only granted access."""
    return agent.reference is not None


def protected_variables(catalogue: Catalogue) -> frozenset[str]:
    """Return variables that no agent gets: those of mleredux itself, and the keys of the gateway's upstreams."""
    named = {name for names in catalogue.hook("mleredux_protected_variables")() for name in names or ()}
    return frozenset(named | {name for name in os.environ if name.startswith(_OURS)})


def is_protected(name: str, protected: Iterable[str]) -> bool:
    """Return whether no agent may get the variable of this name."""
    return name.startswith(_OURS) or name in protected


def passed_variables(
    agent: Agent, grants: Grants, environment: Mapping[str, str], protected: Iterable[str]
) -> dict[str, str]:
    """Return the caller's variables that an agent gets. The value of a protected variable is not passed under another
    name.

    This also applies to the value in the process's environment if a secret provided by a server replaces it.
    """
    declared = () if is_foreign(agent) else (*agent.pass_env, *agent.secrets)
    hidden = {known[name] for known in (os.environ, environment) for name in protected if known.get(name)}
    return {
        name: environment[name]
        for name in (*declared, *grants.variables)
        if name in environment and not is_protected(name, protected) and environment[name] not in hidden
    }


def secret_values(spec: RunSpec, catalogue: Catalogue) -> set[str]:
    """Return the values to mask in all stored files of a run.

    These are the values of variables that are granted or that its agent declares as secrets, all secrets provided to
    this thread, and the passwords of the caller's proxies. Agents that were found by a reference, or are no longer
    installed, have only granted variables and need not be fetched.
    """
    known, names = caller_variables(), spec.grants.variables
    if ":" not in spec.agent:
        with contextlib.suppress(MlereduxError):
            names += catalogue.agent(spec.agent, spec.options).secrets
    passwords = _passwords(callers_proxies()) if spec.network == "open" else set[str]()
    return {known[name] for name in names if name in known} | masked_values() | passwords


def gpu_environment(ids: Sequence[str], *, assigned: bool = False) -> dict[str, str]:
    """Return the variables of CUDA, NVIDIA's container runtime, ROCm and HIP; without GPU ids, they hide all GPUs.

    Args:
        ids: The devices of the slot: device numbers on this machine, or UUIDs.
        assigned: Whether the agent sees only these devices, as in a container, where numbers start at 0.
    """
    seen = [str(place) if assigned and device.isdigit() else device for place, device in enumerate(ids)]
    names = ",".join(seen) or "-1"
    return {
        "NVIDIA_VISIBLE_DEVICES": ",".join(ids) or "void",  # else NVIDIA's older hook adds all that an image wants
        "CUDA_VISIBLE_DEVICES": names,
        "ROCR_VISIBLE_DEVICES": names,
        "HIP_VISIBLE_DEVICES": ",".join(map(str, range(len(ids)))) or "-1",  # among the devices that ROCm shows
    }


def callers_proxies() -> dict[str, str]:
    """Return the proxies in this program's own environment variables, in both spellings."""
    names = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
    proxies = {name: os.environ.get(name) or os.environ.get(name.upper()) for name in names}
    return {spelling: value for name, value in proxies.items() if value for spelling in (name, name.upper())}


def _passwords(proxies: Mapping[str, str]) -> set[str]:
    """Return the passwords in addresses `[SCHEME://]USER[:PASSWORD]@HOST`, or users without a password, raw and
    decoded."""
    users = [address.rpartition("@")[0].rpartition("://")[2] for address in proxies.values()]
    secrets = {password if colon else user for user, colon, password in (text.partition(":") for text in users)}
    return secrets | {unquote(secret) for secret in secrets}
