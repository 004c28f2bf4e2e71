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

from typing import TYPE_CHECKING, Any

from mleredux.models import Artifact, DiskLimit, Event, HostUse, Ledger, LlmUse, Sample, Verdict, VersionScore

from mleredux_client._async.artifacts import AsyncArtifactFile, AsyncArtifacts
from mleredux_client._async.client import AsyncClient
from mleredux_client._async.experiments import AsyncExperiment
from mleredux_client._async.pages import AsyncPager
from mleredux_client._async.runs import AsyncRun
from mleredux_client._async.work import AsyncBuild, AsyncSubmission
from mleredux_client._sync.artifacts import ArtifactFile, Artifacts
from mleredux_client._sync.client import Client
from mleredux_client._sync.experiments import Experiment
from mleredux_client._sync.pages import Pager
from mleredux_client._sync.runs import Run
from mleredux_client._sync.work import Build, Submission
from mleredux_client.errors import (
    Conflict,
    Damaged,
    Forbidden,
    Invalid,
    MlereduxApiError,
    NoSpace,
    NotFound,
    NotYet,
    PreconditionFailed,
    QuotaExceeded,
    RangeNotSatisfiable,
    ServerError,
    TooLarge,
    TooManyRequests,
    Unauthenticated,
    Unavailable,
    UnexpectedAnswer,
    Unreachable,
    UnsafePath,
    UsageError,
    WaitTimeout,
    WorkFailed,
)
from mleredux_client.frames import Listing
from mleredux_client.models.account import Me, Project, Quota, SecretInfo, Token, TokenInfo, Usage, User
from mleredux_client.models.catalogue import Agent, Task, Technique
from mleredux_client.models.run import LogFile, Report, RunRecord, State
from mleredux_client.version import VERSION as __version__

if TYPE_CHECKING:
    from mleredux_rollout.models import Trajectory

__all__ = [
    "Agent",
    "Artifact",
    "ArtifactFile",
    "Artifacts",
    "AsyncArtifactFile",
    "AsyncArtifacts",
    "AsyncBuild",
    "AsyncClient",
    "AsyncExperiment",
    "AsyncPager",
    "AsyncRun",
    "AsyncSubmission",
    "Build",
    "Client",
    "Conflict",
    "Damaged",
    "DiskLimit",
    "Event",
    "Experiment",
    "Forbidden",
    "HostUse",
    "Invalid",
    "Ledger",
    "Listing",
    "LlmUse",
    "LogFile",
    "Me",
    "MlereduxApiError",
    "NoSpace",
    "NotFound",
    "NotYet",
    "Pager",
    "PreconditionFailed",
    "Project",
    "Quota",
    "QuotaExceeded",
    "RangeNotSatisfiable",
    "Report",
    "Run",
    "RunRecord",
    "Sample",
    "SecretInfo",
    "ServerError",
    "State",
    "Submission",
    "Task",
    "Technique",
    "Token",
    "TokenInfo",
    "TooLarge",
    "TooManyRequests",
    "Trajectory",
    "Unauthenticated",
    "Unavailable",
    "UnexpectedAnswer",
    "Unreachable",
    "UnsafePath",
    "Usage",
    "UsageError",
    "User",
    "Verdict",
    "VersionScore",
    "WaitTimeout",
    "WorkFailed",
    "__version__",
]


def __getattr__(name: str) -> Any:
    if name == "Trajectory":  # importing its models takes a while
        from mleredux_rollout.models import Trajectory

        return Trajectory
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
