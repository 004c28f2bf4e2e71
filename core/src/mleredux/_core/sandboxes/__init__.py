"""The process sandbox, and what all sandboxes share: limits, slots, the environment of the agent.

| module | contents |
|---|---|
| `slots`, `gpus` | what this process may use; CPUs, memory and GPUs for runs |
| `environments`, `task_images` | the Python environment of an agent; images that tasks bring |
| `variables`, `tools`, `egress` | what an agent gets besides: variables, tools, a way to allowed hosts |
| `mounts`, `volume` | file systems mounted; the disk of a run |
| `process`, `launched`, `launcher` | the process sandbox; agents below a launcher; the launcher itself |
| `supervise`, `timeline`, `processes` | limits while an agent works; what it uses; its processes |
"""
