"""The Python SDK of the mleredux server.

```python
from mleredux_client import Client

with Client("http://127.0.0.1:8765", token="mlr_…") as client:
    run = client.run("digits", agent="baseline", time_limit=60).wait()
    print(run.status, run.score, run.medal)
```

Modules:

- `plugin`, `cli`: commands on a server
- `settings`, `version`: the server's URL and token; the client's version
- `_async`, `_sync`, `pairs`: the asynchronous client; the synchronous one, generated from it; functions that differ
  between them
- `calls`, `durations`, `folders`: requests as values; durations as text; agents' folders, packed for upload
- `retries`: retries with exponential backoff
- `answers`, `events`, `models`, `errors`: parsed responses; server-sent events; pydantic models; exceptions
- `facts`, `files`, `frames`: properties of runs and experiments; downloaded files; tables and data frames
- `display`, `markup`: HTML for notebooks
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mleredux.models.imports import on_first_use

from mleredux_client.version import VERSION as __version__

if TYPE_CHECKING:
    from mleredux.models import Artifact as Artifact
    from mleredux.models import DiskLimit as DiskLimit
    from mleredux.models import Event as Event
    from mleredux.models import HostUse as HostUse
    from mleredux.models import Ledger as Ledger
    from mleredux.models import LlmUse as LlmUse
    from mleredux.models import Sample as Sample
    from mleredux.models import Verdict as Verdict
    from mleredux.models import VersionScore as VersionScore
    from mleredux_rollout.models import Trajectory as Trajectory

    from mleredux_client._async.artifacts import AsyncArtifactFile as AsyncArtifactFile
    from mleredux_client._async.artifacts import AsyncArtifacts as AsyncArtifacts
    from mleredux_client._async.client import AsyncClient as AsyncClient
    from mleredux_client._async.experiments import AsyncExperiment as AsyncExperiment
    from mleredux_client._async.pages import AsyncPager as AsyncPager
    from mleredux_client._async.runs import AsyncRun as AsyncRun
    from mleredux_client._async.work import AsyncBuild as AsyncBuild
    from mleredux_client._async.work import AsyncSubmission as AsyncSubmission
    from mleredux_client._sync.artifacts import ArtifactFile as ArtifactFile
    from mleredux_client._sync.artifacts import Artifacts as Artifacts
    from mleredux_client._sync.client import Client as Client
    from mleredux_client._sync.experiments import Experiment as Experiment
    from mleredux_client._sync.pages import Pager as Pager
    from mleredux_client._sync.runs import Run as Run
    from mleredux_client._sync.work import Build as Build
    from mleredux_client._sync.work import Submission as Submission
    from mleredux_client.errors import Conflict as Conflict
    from mleredux_client.errors import Damaged as Damaged
    from mleredux_client.errors import Forbidden as Forbidden
    from mleredux_client.errors import Invalid as Invalid
    from mleredux_client.errors import MlereduxApiError as MlereduxApiError
    from mleredux_client.errors import NoSpace as NoSpace
    from mleredux_client.errors import NotFound as NotFound
    from mleredux_client.errors import NotYet as NotYet
    from mleredux_client.errors import PreconditionFailed as PreconditionFailed
    from mleredux_client.errors import QuotaExceeded as QuotaExceeded
    from mleredux_client.errors import RangeNotSatisfiable as RangeNotSatisfiable
    from mleredux_client.errors import ServerError as ServerError
    from mleredux_client.errors import TooLarge as TooLarge
    from mleredux_client.errors import TooManyRequests as TooManyRequests
    from mleredux_client.errors import Unauthenticated as Unauthenticated
    from mleredux_client.errors import Unavailable as Unavailable
    from mleredux_client.errors import UnexpectedAnswer as UnexpectedAnswer
    from mleredux_client.errors import Unreachable as Unreachable
    from mleredux_client.errors import UnsafePath as UnsafePath
    from mleredux_client.errors import UsageError as UsageError
    from mleredux_client.errors import WaitTimeout as WaitTimeout
    from mleredux_client.errors import WorkFailed as WorkFailed
    from mleredux_client.frames import Listing as Listing
    from mleredux_client.models.account import Me as Me
    from mleredux_client.models.account import Project as Project
    from mleredux_client.models.account import Quota as Quota
    from mleredux_client.models.account import SecretInfo as SecretInfo
    from mleredux_client.models.account import Token as Token
    from mleredux_client.models.account import TokenInfo as TokenInfo
    from mleredux_client.models.account import Usage as Usage
    from mleredux_client.models.account import User as User
    from mleredux_client.models.catalogue import Agent as Agent
    from mleredux_client.models.catalogue import Task as Task
    from mleredux_client.models.catalogue import Technique as Technique
    from mleredux_client.models.run import LogFile as LogFile
    from mleredux_client.models.run import Report as Report
    from mleredux_client.models.run import RunRecord as RunRecord
    from mleredux_client.models.run import State as State

_HOMES = {
    "mleredux.models": "Artifact DiskLimit Event HostUse Ledger LlmUse Sample Verdict VersionScore",
    "mleredux_rollout.models": "Trajectory",
    "._async.artifacts": "AsyncArtifactFile AsyncArtifacts",
    "._async.client": "AsyncClient",
    "._async.experiments": "AsyncExperiment",
    "._async.pages": "AsyncPager",
    "._async.runs": "AsyncRun",
    "._async.work": "AsyncBuild AsyncSubmission",
    "._sync.artifacts": "ArtifactFile Artifacts",
    "._sync.client": "Client",
    "._sync.experiments": "Experiment",
    "._sync.pages": "Pager",
    "._sync.runs": "Run",
    "._sync.work": "Build Submission",
    ".errors": "Conflict Damaged Forbidden Invalid MlereduxApiError NoSpace NotFound NotYet PreconditionFailed "
    "QuotaExceeded RangeNotSatisfiable ServerError TooLarge TooManyRequests Unauthenticated Unavailable "
    "UnexpectedAnswer Unreachable UnsafePath UsageError WaitTimeout WorkFailed",
    ".frames": "Listing",
    ".models.account": "Me Project Quota SecretInfo Token TokenInfo Usage User",
    ".models.catalogue": "Agent Task Technique",
    ".models.run": "LogFile Report RunRecord State",
}
__getattr__, _names = on_first_use(__name__, _HOMES)
__all__ = [*_names, "__version__"]


def __dir__() -> list[str]:
    return __all__
