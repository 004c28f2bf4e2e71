"""For authors of executors, which place runs on machines: a cluster's queue, a cloud.

An object store transfers runs and data to nodes that do not share a file system. A plugin registers a
`Scheme` of its URLs whose `open_store` returns an object with the methods of `ObjectStore`.

An executor is an object with the attributes and methods of `Executor`, registered by a plugin. It starts the command of
each specification on a node, reports whether the command is waiting, running or has ended, and can kill it::

    from mleredux.plugin.executor import JobSpec, JobStatus

    def submit(self, specs: list[JobSpec]) -> list[str]:
        return [self.queue.submit(spec.command, cpus=spec.limits.cpus) for spec in specs]

    def poll(self, jobs: list[str]) -> dict[str, JobStatus]:
        return {job: JobStatus("running" if self.queue.has(job) else "ended") for job in jobs}
"""

from __future__ import annotations

from mleredux._core.executors import Executor, JobSpec, JobStatus, Node, Nodes, ObjectStore, Stored
from mleredux._core.moved import moved
from mleredux._core.plugins.withheld import job_environment

__all__ = [
    "Executor",
    "JobSpec",
    "JobStatus",
    "Node",
    "Nodes",
    "ObjectStore",
    "Stored",
    "job_environment",
]

__getattr__ = moved(__name__, __name__, {"Ticket": "JobSpec"})
