"""Plans of experiments and their execution.

| module | contents |
|---|---|
| `plan`, `record` | plan files, and `experiment.json`: the frozen plan with its deviations |
| `estimate` | the time and cost of a plan, and the difference that it can detect |
| `experiment`, `execution` | functions that start, extend and execute an experiment |
| `sequence` | the sequential stopping rule |
| `bisection` | the commit of an agent that changed a score |
"""
