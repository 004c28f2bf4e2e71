"""The table of runs from which everything else is computed.

| module | contents |
|---|---|
| `table` | the table with one row per run, and its selectors |
| `sources`, `grading_reports`, `rollouts` | rows from runs folders, experiments, servers, reports of MLE-bench |
| `uniformity` | which runs may be averaged or compared |
| `measures`, `scores` | measures of runs and means of arms, scores by task, outcomes of runs |
"""
