"""Planning: a request of runs becomes `list[RunPlan]`, here and nowhere else.

The command line, the Python API, experiments and services call `plan`.

| modules | contents |
|---|---|
| `plans` | `plan`: each run of a request, validated, allowed here, and granted |
| `tasks` | sets resolved; tasks imported by a reference; metrics that can be computed here |
| `agents` | agents named by the path of a script or folder |
| `grants` | what agents ask for, and what they were granted; tools that they can use |
| `sandboxes` | the sandbox of a run on its user's own machine |
"""
