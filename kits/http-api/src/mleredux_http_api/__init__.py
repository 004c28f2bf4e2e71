"""For programs that send or read responses of the HTTP API, as the server and the client do.

| module | contents |
|---|---|
| `accounts` | users, tokens, secrets, webhooks, and the usage of projects |
| `catalogue` | installed tasks, techniques, agents, graders and sandboxes |
| `work` | runs and their logs, experiments, submissions and builds |
| `base` | the class of all models |

All fields of a response are required, unless they have a default::

    from mleredux_http_api import QueuePlace

    assert QueuePlace(position=1, starts_in=None).position == 1
"""

from __future__ import annotations

from mleredux_http_api.accounts import DeliveryView as DeliveryView
from mleredux_http_api.accounts import SecretView as SecretView
from mleredux_http_api.accounts import TokenView as TokenView
from mleredux_http_api.accounts import Usage as Usage
from mleredux_http_api.accounts import UserView as UserView
from mleredux_http_api.accounts import WebhookView as WebhookView
from mleredux_http_api.catalogue import AgentView as AgentView
from mleredux_http_api.catalogue import GraderView as GraderView
from mleredux_http_api.catalogue import SandboxView as SandboxView
from mleredux_http_api.catalogue import TaskView as TaskView
from mleredux_http_api.catalogue import TechniqueView as TechniqueView
from mleredux_http_api.work import BuildView as BuildView
from mleredux_http_api.work import ExperimentView as ExperimentView
from mleredux_http_api.work import LogView as LogView
from mleredux_http_api.work import QueuePlace as QueuePlace
from mleredux_http_api.work import RunView as RunView
from mleredux_http_api.work import SubmissionView as SubmissionView
