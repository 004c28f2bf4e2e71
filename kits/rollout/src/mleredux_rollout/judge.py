"""A language model that answers questions about ended runs, through the gateway and with its own budget."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from urllib.parse import urlsplit

from mleredux._core.plugins import current
from mleredux._core.store import Run, RunStore
from mleredux.errors import WRONG_SHAPE, MlereduxError, file_errors
from mleredux.models import Agent, Limits, LlmUse

_SECONDS = 300.0
_READ = 2000
_BUDGET = '"budget_exhausted"'
"""The error type of a gateway for a call that exceeds the budget."""


class BudgetExhausted(MlereduxError):
    """The budget of a judge is too small for a call."""


@dataclass
class Judge:
    """A model behind a gateway, opened with `open_judge`.

    Attributes:
        model: The name of the model.
        use: The usage, once the judge is closed.
    """

    model: str
    _variables: dict[str, str] = field(repr=False)
    use: LlmUse = field(default_factory=LlmUse)

    def ask(self, order: str, material: str) -> str:
        """Return the model's response, which should be one JSON object.

        Args:
            order: The question, and the rules for the answer.
            material: The agent's text, as data, which may try to instruct the model.

        Raises:
            BudgetExhausted: The remaining budget is too small.
            MlereduxError: The gateway refuses the call for another reason, or the model does not respond.
        """
        from http.client import HTTPConnection, HTTPException

        messages = [{"role": "system", "content": order}, {"role": "user", "content": material}]
        body = {"model": self.model, "messages": messages, "response_format": {"type": "json_object"}}
        key = self._variables["OPENAI_API_KEY"]
        base = urlsplit(self._variables["OPENAI_BASE_URL"])
        message = f"The judge {self.model} returned no valid response"
        hint, invalid = "Use another model.", (HTTPException, ValueError, *WRONG_SHAPE)
        with file_errors(MlereduxError, message, hint, *invalid):
            # This does not follow redirects, because the request contains a key.
            with closing(HTTPConnection(base.netloc, timeout=_SECONDS)) as gateway:
                headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
                gateway.request("POST", f"{base.path}/chat/completions", json.dumps(body), headers)
                response = gateway.getresponse()
                content = response.read()
            if response.status == HTTPStatus.OK:
                return str(json.loads(content)["choices"][0]["message"]["content"])
        refusal = content[:_READ].decode("utf-8", "replace")
        if _BUDGET in refusal:
            raise BudgetExhausted(f"The budget of the judge {self.model} is used up.")
        raise MlereduxError(f"The judge {self.model} did not respond ({response.status}): {refusal}", hint=hint)


@contextmanager
def open_judge(run: Run, model: str, *, calls: int, cost_usd: float | None = None) -> Iterator[Judge]:
    """Open a gateway for a judge. Its usage does not count toward any run.

    Args:
        run: The run to judge, or the first of several runs.
        model: The name of the model.
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
            raise MlereduxError("A judge needs a gateway.", hint="Install mleredux-gateway, and set an API key.")
        judge = Judge(model, opened.environment(opened.url))
        try:
            yield judge
        finally:
            judge.use = opened.close()
