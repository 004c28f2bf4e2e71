"""Planning: the only place where a request for runs becomes a `list[RunPlan]`.

The command line, the Python API, experiments and services call `plan`.

| modules | contents |
|---|---|
| `plans` | `plan`: each run of a request, validated, permitted, with its grants and its sandbox |
| `names` | resolves sets, imports tasks, finds agents by path; checks that metrics can be computed |
| `selection` | selects some of the requested runs: by words in task names, or those that failed last |
| `grants` | requested and granted access of agents; the tools they can use |
"""
