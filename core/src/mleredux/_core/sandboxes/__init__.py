"""The process sandbox, and the code shared by all sandboxes: limits, slots, the agent's variables.

| module | contents |
|---|---|
| `slots` | the resources of this process; CPUs, memory and GPUs for runs |
| `task_images` | the images of tasks |
| `variables`, `tools`, `egress` | an agent's variables, tools, and access to allowed hosts |
| `mounts`, `volume` | mounting file systems; the disk of a run |
| `process`, `launched` | the process sandbox; agents started by a launcher |
| `supervise`, `timeline`, `processes` | limits while an agent runs; its resource use; its processes |
"""
