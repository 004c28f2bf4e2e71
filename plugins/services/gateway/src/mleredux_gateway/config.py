"""Destinations of calls: upstreams with their keys, from `gateway.toml` or from the caller's environment."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import click
from mleredux.errors import SandboxError, file_errors
from mleredux.models import first_problem
from mleredux.plugin.agent import provided_secrets
from mleredux.plugin.experiment import RunPlan
from mleredux.plugin.gateway import includes_model
from mleredux.plugin.sandbox import Finding
from mleredux_llm_protocols import Family
from pydantic import BaseModel, ConfigDict, Field, ValidationError

CONFIG_VARIABLE = "MLEREDUX_GATEWAY_CONFIG"
_README = "See the README of mleredux-gateway."
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Price(_Part):
    """Prices in USD per million tokens."""

    input: Annotated[float, Field(ge=0)]
    output: Annotated[float, Field(ge=0)]
    cached: Annotated[float, Field(ge=0)] | None = None
    """Tokens read from the provider's cache; if None, as `input`."""
    cache_write: Annotated[float, Field(ge=0)] | None = None
    """Tokens written to the provider's cache; if None, as `input`."""
    above: int | None = None
    """For prompts with more tokens than this, the following prices apply."""
    above_input: float | None = None
    above_output: float | None = None
    above_cached: float | None = None
    above_cache_write: float | None = None
    max_output: Annotated[int, Field(ge=1)] | None = None
    """Maximum number of tokens that the model can generate in an answer."""


class UpstreamConfig(_Part):
    """A provider, as configured in `gateway.toml`."""

    protocol: Family
    base_url: str
    """The base URL, including `/v1` if the provider's clients expect it."""
    key_env: str | None = None
    """The variable of the caller's environment that contains the key; None if no key is needed."""
    models: tuple[str, ...] = ("*",)
    """Models offered to agents: names or patterns (`gpt-5*`)."""
    rename: dict[str, str] = {}
    """The provider's model names, by the names that agents use."""
    headers: dict[str, str] = {}
    """Headers sent with each call; `{run}` is replaced by the run's id."""
    timeout: Annotated[float, Field(gt=0)] = 900
    """Timeout in seconds if no byte arrives from the provider."""
    max_output: Annotated[int, Field(ge=1)] = 8192
    """Maximum tokens of an answer for budgets, if neither the request nor the model's price specifies one."""
    allow: tuple[str, ...] = ()
    """Fields of requests that agents may send in addition to the usual ones: names or patterns, as stated in
    refusals."""


class _File(_Part):
    upstreams: dict[str, UpstreamConfig]
    prices: dict[str, Price] = {}
    price_table: Path | None = None


@dataclass(frozen=True)
class Upstream:
    """A provider with its key, which is not part of any string representation.

    Attributes:
        name: Its name in the configuration.
        key: The secret; empty if none is needed.
    """

    name: str
    config: UpstreamConfig
    key: str

    def __repr__(self) -> str:
        return f"Upstream({self.name!r}, {self.config.base_url!r})"

    @property
    def host(self) -> str:
        """Return the upstream's host for the record, without user or password."""
        parts = urlsplit(self.config.base_url)
        return f"{parts.hostname or ''}:{parts.port}" if parts.port else parts.hostname or ""

    def offers(self, model: str) -> bool:
        """Return whether agents may request this model here; models that search the web must be named exactly."""
        if model in self.config.rename:
            return True
        return includes_model(self.config.models, model)

    def url(self, path: str) -> str:
        """Return the URL of an endpoint.

        Args:
            path: The path under `/v1` (`/v1beta` for Google), such as `/chat/completions`.
        """
        base = self.config.base_url.rstrip("/")
        if self.config.protocol == "google":
            return base.removesuffix("/v1beta") + "/v1beta" + path
        if self.config.protocol == "anthropic":
            base = base.removesuffix("/v1") + "/v1"
        return base + path

    def headers(self, run_id: str) -> dict[str, str]:
        """Return the header with the key, and the configured headers; servers on this machine also receive the run's
        id.

        Using this id, `mleredux scripted-llm` counts the calls of each run separately.
        """
        own = {"X-Conversation": run_id} if urlsplit(self.config.base_url).hostname in _LOOPBACK else {}
        own |= {name: value.replace("{run}", run_id) for name, value in self.config.headers.items()}
        if not self.key:
            return own
        if self.config.protocol == "anthropic":
            return {**own, "X-Api-Key": self.key}
        if self.config.protocol == "google":
            return {**own, "X-Goog-Api-Key": self.key}
        return {**own, "Authorization": f"Bearer {self.key}"}


@dataclass(frozen=True)
class GatewayConfig:
    """All upstreams, and the user's prices."""

    upstreams: tuple[Upstream, ...]
    prices: dict[str, Price]
    price_table: Path | None
    granted: tuple[str, ...] = ()
    """Names or patterns of additional models granted to one run."""

    def granting(self, fields: tuple[str, ...], models: tuple[str, ...]) -> GatewayConfig:
        """Return a copy that grants one run additional fields of requests and models, by names or patterns."""
        more = [
            replace(upstream, config=upstream.config.model_copy(update={"allow": (*upstream.config.allow, *fields)}))
            for upstream in self.upstreams
        ]
        return replace(self, upstreams=tuple(more), granted=models)

    def find(self, family: Family, model: str) -> Upstream | None:
        """Return the first upstream of a protocol that offers a model; for a granted model, the first of the
        protocol."""
        possible = [upstream for upstream in self.upstreams if upstream.config.protocol == family]
        offered = (upstream for upstream in possible if upstream.offers(model))
        return next(offered, possible[0] if possible and includes_model(self.granted, model) else None)


def replaying(source: str, models: tuple[str, ...], environment: Mapping[str, str]) -> GatewayConfig:
    """Return the configuration of a replay, in which nothing is forwarded and no key is needed.

    Args:
        source: The id of the run whose answers are replayed.
        models: The models that were called in that run.
    """
    try:
        known = load_config(environment)
    except SandboxError:
        known = GatewayConfig((), {}, None)
    allowed = tuple(field for upstream in known.upstreams for field in upstream.config.allow)
    families: tuple[Family, ...] = ("openai", "anthropic", "google")
    upstreams = tuple(
        Upstream(
            "replay", UpstreamConfig(protocol=family, base_url=f"replay://{source}", models=models, allow=allowed), ""
        )
        for family in families
    )
    return replace(known, upstreams=upstreams)


def config_path(environment: Mapping[str, str]) -> Path:
    """Return `MLEREDUX_GATEWAY_CONFIG`, or `gateway.toml` in mleredux's user configuration folder."""
    if named := environment.get(CONFIG_VARIABLE):
        return Path(named)
    folder = Path(environment.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return folder / "mleredux" / "gateway.toml"


def load_config(environment: Mapping[str, str] = os.environ) -> GatewayConfig:
    """Load the configuration file if it exists, or else use the known providers whose keys are in the environment.

    Raises:
        SandboxError: There is no upstream, or the file is invalid.
    """
    path = config_path(environment)
    if path.is_file() or CONFIG_VARIABLE in environment:
        return _from_file(path, environment)
    upstreams = tuple(
        Upstream(name, config, environment[str(config.key_env)])
        for name, config in _known(environment).items()
        if environment.get(str(config.key_env))
    )
    if not upstreams:
        raise SandboxError(
            "No language model is configured for the gateway.",
            hint=f"Set OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY, or create {path}; or run the agent "
            f"with `--network none` if it calls no model. {_README}",
        )
    return GatewayConfig(upstreams, {}, None)


@click.command("models")
def doctor(plan: RunPlan | None = None) -> list[Finding]:
    """Check whether upstreams are configured, with their keys, and whether one offers the model of a plan."""
    try:
        config = load_config(run_variables())
    except SandboxError as error:
        return [Finding("language models", False, error.message, error.hint)]
    if plan:
        config = config.granting((), plan.grants.llm_models)
    options = plan.options if plan else {}
    for model in [str(value) for name, value in options.items() if value and f"_{name}".endswith("_model")]:
        names = (model, model.partition("/")[2])  # LiteLLM's names begin with the provider
        if not any(config.find(item.config.protocol, name) for item in config.upstreams for name in names):
            hint = "Choose one that the gateway's configuration lists under `models`."
            return [Finding("language models", False, f"No upstream of the gateway offers the model {model}.", hint)]
    return [Finding("language models", True, f"Upstreams: {', '.join(item.name for item in config.upstreams)}.")]


def key_variables(environment: Mapping[str, str] = os.environ) -> frozenset[str]:
    """Return the names of all variables that contain a key: those of the known providers, and those in the file.

    Raises:
        SandboxError: The file cannot be read, so the variables that it protects are unknown.
    """
    known = {str(config.key_env) for config in _known({}).values()}
    path = config_path(environment)
    if not path.is_file():
        return frozenset(known)
    return frozenset(known | {config.key_env for config in _read(path).upstreams.values() if config.key_env})


def run_variables() -> dict[str, str]:
    """Return the environment of this process, including the keys that a user provides for the run.

    Other variables from the user are ignored, since a URL or folder of theirs would receive this machine's keys.

    Raises:
        SandboxError: The file cannot be read.
    """
    keys = key_variables()
    return {**os.environ, **{name: value for name, value in provided_secrets().items() if name in keys}}


def _from_file(path: Path, environment: Mapping[str, str]) -> GatewayConfig:
    settings = _read(path)
    upstreams = []
    for name, config in settings.upstreams.items():
        key = environment.get(config.key_env, "") if config.key_env else ""
        if config.key_env and not key:
            raise SandboxError(
                f"Upstream {name} in {path} reads its key from {config.key_env}, which is not set.",
                hint=f"Set {config.key_env}, or remove the upstream.",
            )
        upstreams.append(Upstream(name, config, key))
    if not upstreams:
        raise SandboxError(f"{path} defines no upstream.", hint=_README)
    table = settings.price_table and (path.parent / settings.price_table.expanduser())
    return GatewayConfig(tuple(upstreams), settings.prices, table)


def _read(path: Path) -> _File:
    with file_errors(SandboxError, f"The gateway's configuration {path} can't be read", _README, ValueError):
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    try:
        return _File.model_validate(_tuples(content))
    except ValidationError as error:
        place, message, _ = first_problem(error)
        raise SandboxError(f"In {path}, {place}: {message}.", hint=_README) from None


def _known(environment: Mapping[str, str]) -> dict[str, UpstreamConfig]:
    """Return providers that need no configuration file; custom URLs are taken from the variables that their own clients
    use."""
    openai = environment.get("OPENAI_BASE_URL") or environment.get("OPENAI_API_BASE") or "https://api.openai.com/v1"
    anthropic = environment.get("ANTHROPIC_BASE_URL") or "https://api.anthropic.com"
    google = environment.get("GOOGLE_GEMINI_BASE_URL") or "https://generativelanguage.googleapis.com"
    return {
        "openai": UpstreamConfig(protocol="openai", base_url=openai, key_env="OPENAI_API_KEY"),
        "anthropic": UpstreamConfig(protocol="anthropic", base_url=anthropic, key_env="ANTHROPIC_API_KEY"),
        "google": UpstreamConfig(protocol="google", base_url=google, key_env="GEMINI_API_KEY"),
    }


def _tuples(value: Any) -> Any:
    """Convert TOML's arrays to tuples for pydantic."""
    if isinstance(value, dict):
        return {name: _tuples(part) for name, part in value.items()}
    return tuple(_tuples(part) for part in value) if isinstance(value, list) else value
