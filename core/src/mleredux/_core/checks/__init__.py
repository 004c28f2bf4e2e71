"""Checks before anything is started: this machine's setup, and whether given tasks and agents will run on it.

| modules | contents |
|---|---|
| `machine` | plugins, sandboxes, executors, disk space |
| `readiness` | metrics, data and disk space for tasks; sandbox, keys and resources for an agent on a task |
"""
