"""Checks before anything is started: this machine's setup, and whether given tasks and agents will run on it.

| modules | contents |
|---|---|
| `machine` | plugins, sandboxes, disk space; the GPUs that an agent would see in each sandbox |
| `gpu_probe` | the program that looks for GPUs in a sandbox |
| `readiness` | metrics, data and disk space for tasks; sandbox, keys and resources for an agent on a task |
"""
