"""For authors of executors, which place runs on machines: a cluster's queue, a cloud.

An object store transfers runs and data to nodes that do not share a file system. A plugin registers a
`Scheme` for its URLs, whose `open_store` returns an object with the methods of `ObjectStore`.

An executor is an object with the attributes and methods of `Executor`, registered by a plugin. It starts the command of
each specification on a node, reports whether the command is waiting, running or has ended, and can kill it::

    from mleredux.plugin.executor import JobSpec, JobStatus

    def submit(self, specs: list[JobSpec]) -> list[str]:
        return [self.queue.submit(spec.command, cpus=spec.limits.cpus) for spec in specs]

    def poll(self, jobs: list[str]) -> dict[str, JobStatus]:
        return {job: JobStatus("running" if self.queue.has(job) else "ended") for job in jobs}
"""

from __future__ import annotations

from mleredux._core.executors import Executor as Executor
from mleredux._core.executors import JobSpec as JobSpec
from mleredux._core.executors import JobStatus as JobStatus
from mleredux._core.executors import Node as Node
from mleredux._core.executors import Nodes as Nodes
from mleredux._core.executors import ObjectStore as ObjectStore
from mleredux._core.executors import Stored as Stored
from mleredux._core.moved import moved
from mleredux._core.plugins.withheld import job_environment as job_environment

__getattr__ = moved(__name__, __name__, {"Ticket"})
