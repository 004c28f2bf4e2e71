"""Planning: a request of runs becomes `list[RunPlan]`, here and nowhere else.

The command line, the Python API, experiments and services call `plan`.

| modules | contents |
|---|---|
| `plans` | `plan`: each run of a request, validated, allowed here, and granted |
| `names` | sets resolved, tasks imported, agents named by a path; metrics that can be computed here |
| `selection` | some of the requested runs: by words of tasks' names, or those that failed last |
| `grants` | what agents ask for, and what they were granted; tools that they can use |
| `sandboxes` | the sandbox of a run on its user's own machine |
"""
