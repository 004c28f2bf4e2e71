"""Costs of calls, from the user's own prices, a table in LiteLLM's format, and the included table.

`python -m mleredux_gateway.prices TABLE "LiteLLM VERSION" DATE` regenerates `prices.json` from a table in LiteLLM's
format (`model_prices_and_context_window.json`, which LiteLLM ships and publishes).
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from mleredux.errors import SandboxError, file_errors
from mleredux_llm_protocols import Tokens

from mleredux_gateway.config import Price

_PROVIDERS = ("openai", "anthropic", "gemini", "deepseek", "mistral", "xai", "groq")
_MODES = ("chat", "responses", "completion")
_ABOVE = re.compile(r"input_cost_per_token_above_(\d+)k_tokens$")
_MILLION = 1_000_000
_HOUR = 2


@dataclass(frozen=True)
class Priced:
    """The price of a model.

    Attributes:
        table: Name, date and checksum of the table that contains it.
    """

    price: Price
    table: str


class Prices:
    """Finds the price of a model.

    Args:
        own: The user's prices, which take precedence.
        table: A file in LiteLLM's format. The table of an installed LiteLLM is read only if specified here; otherwise
            the same run would have different costs on two machines.

    Raises:
        SandboxError: The specified table cannot be read.
    """

    def __init__(self, own: dict[str, Price] | None = None, table: Path | None = None) -> None:
        written = json.dumps({name: price.model_dump() for name, price in (own or {}).items()}, sort_keys=True)
        self._tables = [(own or {}, _label("gateway.toml", written.encode()))]
        if table is not None:
            with file_errors(SandboxError, f"The price table {table} can't be read", None, ValueError, AttributeError):
                self._tables.append((read_litellm(table), _label(table.name, table.read_bytes())))
        data = resources.files(__package__).joinpath("prices.json").read_bytes()
        shipped = json.loads(data)
        models = {name: Price(**fields) for name, fields in shipped["models"].items()}
        self._tables.append((models, _label(f"prices.json of {shipped['date']}", data)))

    def of(self, *names: str) -> Priced | None:
        """Return the price of the first of these names that has one; the prefix of a provider (`openai/`) is
        optional."""
        for name in names:
            for known in (name, name.rpartition("/")[2]):
                for table, label in self._tables:
                    if known in table:
                        return Priced(table[known], label)
        return None


def cost_of(tokens: Tokens, price: Price) -> float:
    """Return the cost in USD."""
    above = price.above is not None and tokens.prompt > price.above
    read = _first(price.above_input if above else None, price.input)
    written = _first(price.above_output if above else None, price.output)
    cached = _first(price.above_cached if above else None, price.cached, read)
    stored = _first(price.above_cache_write if above else None, price.cache_write, read)
    fresh = max(0, tokens.prompt - tokens.cached - tokens.cache_written)
    total = fresh * read + tokens.cached * cached + tokens.cache_written * stored + tokens.completion * written
    # Caching for an hour costs twice the input price (Anthropic, "Prompt caching").
    return (total + tokens.cache_written_hour * max(0.0, _HOUR * read - stored)) / _MILLION


def highest(price: Price, prompt: int, *, hour: bool) -> tuple[float, float]:
    """Return the highest price in USD per input token and per output token, whatever a provider's cache reads or
    writes.

    Args:
        price: The price of the model.
        prompt: Upper bound on the input tokens.
        hour: Whether the prompt may be cached for an hour.
    """
    read: list[float | None] = [price.input, price.cached, price.cache_write, _HOUR * price.input if hour else None]
    written: list[float | None] = [price.output]
    if price.above is not None and prompt > price.above:
        read += [price.above_input, price.above_cached, price.above_cache_write]
        read += [_HOUR * (price.above_input or 0.0)] if hour else []
        written.append(price.above_output)
    return (
        max(value for value in read if value is not None) / _MILLION,
        max(value for value in written if value is not None) / _MILLION,
    )


def read_litellm(path: Path) -> dict[str, Price]:
    """Return prices of language models from a table in LiteLLM's format, by model name without a provider's prefix."""
    prices: dict[str, Price] = {}
    for name, facts in json.loads(path.read_text(encoding="utf-8")).items():
        if facts.get("mode") in _MODES and "input_cost_per_token" in facts and "output_cost_per_token" in facts:
            prices[name] = _price(facts)
    # A provider's own name takes precedence over that of a reseller.
    for name in list(prices):
        prices.setdefault(name.rpartition("/")[2], prices[name])
    return prices


def _price(facts: dict[str, Any]) -> Price:
    def million(name: str) -> float | None:
        value = facts.get(name)
        return None if value is None else round(float(value) * _MILLION, 6)

    steps = sorted(int(match[1]) for match in map(_ABOVE.match, facts) if match)
    suffix = f"_above_{steps[0]}k_tokens" if steps else None
    return Price(
        input=million("input_cost_per_token") or 0.0,
        output=max(million(f"output_cost_per_{kind}token") or 0.0 for kind in ("", "reasoning_")),
        max_output=facts.get("max_output_tokens") or None,
        cached=million("cache_read_input_token_cost"),
        cache_write=million("cache_creation_input_token_cost"),
        above=steps[0] * 1000 if steps else None,
        above_input=million(f"input_cost_per_token{suffix}") if suffix else None,
        above_output=million(f"output_cost_per_token{suffix}") if suffix else None,
        above_cached=million(f"cache_read_input_token_cost{suffix}") if suffix else None,
        above_cache_write=million(f"cache_creation_input_token_cost{suffix}") if suffix else None,
    )


def _label(name: str, data: bytes) -> str:
    return f"{name} (sha256 {hashlib.sha256(data).hexdigest()[:16]})"


def _first(*values: float | None) -> float:
    return next(value for value in values if value is not None)


def _main(table: Path, source: str, date: str) -> None:
    listed = json.loads(table.read_text(encoding="utf-8"))
    prices = read_litellm(table)
    shipped: dict[str, Price] = {}
    for name, facts in listed.items():
        if facts.get("litellm_provider") in _PROVIDERS and name in prices and not name.startswith("ft:"):
            shipped.setdefault(name.rpartition("/")[2], prices[name])
    lines = [
        f"  {json.dumps(name)}: {json.dumps(price.model_dump(exclude_none=True))}"
        for name, price in sorted(shipped.items())
    ]
    source = f"Created from the table of {source} (MIT) by mleredux_gateway.prices; USD per million tokens."
    head = f'{{\n "source": {json.dumps(source)},\n "date": {json.dumps(date)},\n'
    print(head + ' "models": {\n' + ",\n".join(lines) + "\n }\n}")


if __name__ == "__main__":
    _main(Path(sys.argv[1]), *sys.argv[2:])
