"""A language model that is asked about runs after they have ended, through the gateway, with a budget of its own."""

from __future__ import annotations

import json
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from mleredux._core.plugins.catalogue import current
from mleredux._core.store import Run, RunStore
from mleredux.errors import MlereduxError
from mleredux.models import Agent, Limits, LlmUse

_SECONDS = 300.0
_READ = 2000
_BUDGET = '"budget_exhausted"'
"""The type of a gateway's error for a call that does not fit the budget."""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_request: object) -> None:
        """Follow none: the request holds a key."""


_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirects)


class BudgetExhausted(MlereduxError):
    """The budget of a judge is too small for a call."""


@dataclass
class Judge:
    """A model behind a gateway; `open_judge` opens one.

    Attributes:
        model: Its name.
        use: What it used, once it is closed.
    """

    model: str
    _variables: dict[str, str] = field(repr=False)
    use: LlmUse = field(default_factory=LlmUse)

    def ask(self, order: str, material: str) -> str:
        """Return the model's response, which should be one JSON object.

        Args:
            order: What to judge, and by which rules.
            material: What an agent has written: data, which may address the model.

        Raises:
            BudgetExhausted: The rest of its budget is too small.
            MlereduxError: The gateway refuses the call for another reason, or the model does not respond.
        """
        messages = [{"role": "system", "content": order}, {"role": "user", "content": material}]
        body = {"model": self.model, "messages": messages, "response_format": {"type": "json_object"}}
        request = urllib.request.Request(
            f"{self._variables['OPENAI_BASE_URL']}/chat/completions",
            data=json.dumps(body).encode(),
            headers={
                "Content-Type": "application/json",
                "Authorization": f"Bearer {self._variables['OPENAI_API_KEY']}",
            },
        )
        try:
            with _OPENER.open(request, timeout=_SECONDS) as answer:
                return str(json.load(answer)["choices"][0]["message"]["content"])
        except urllib.error.HTTPError as error:
            said = error.read(_READ).decode("utf-8", "replace")
            if _BUDGET in said:
                raise BudgetExhausted(f"The budget of the judge {self.model} is used up.") from error
            raise MlereduxError(
                f"The judge {self.model} did not respond ({error.code}): {said}", hint="Use another model."
            ) from error
        except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
            raise MlereduxError(
                f"The judge {self.model} gave no valid response: {error}.", hint="Use another model."
            ) from error


@contextmanager
def open_judge(run: Run, model: str, *, calls: int, cost_usd: float | None = None) -> Iterator[Judge]:
    """Open a gateway for a judge. What it uses does not count for any run.

    Args:
        run: What is judged, or the first of several runs.
        calls, cost_usd: The judge's budget.

    Raises:
        MlereduxError: There is no gateway, or it has no upstream.
    """
    with tempfile.TemporaryDirectory(prefix="mleredux-judge-") as folder:
        limits = Limits(llm_calls=calls, llm_cost_usd=cost_usd, time_limit=_SECONDS)
        spec = run.spec.model_copy(update={"agent": "judge", "limits": limits, "network": "gateway"})
        own = RunStore(Path(folder) / "runs").create(spec, spec.data_dir)
        agent = Agent(id="judge", title="Judge", command=("true",), network="gateway")
        opened = current().hook("mleredux_open_gateway")(run=own, agent=agent, socket=Path(folder) / "judge.sock")
        if opened is None:
            raise MlereduxError("A judge needs a gateway.", hint="`pip install mleredux-gateway`, and set an API key.")
        judge = Judge(model, opened.environment(opened.url))
        try:
            yield judge
        finally:
            judge.use = opened.close()
