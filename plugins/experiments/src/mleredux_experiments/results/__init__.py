"""The table of runs from which everything else is computed.

| module | contents |
|---|---|
| `table` | one row a run, with its selectors |
| `sources`, `grading_reports`, `rollouts` | rows from runs folders, experiments, servers, reports of MLE-bench |
| `imports` | reports and submissions of other programs |
| `uniformity` | which runs may be averaged or compared |
| `measures`, `scores`, `outcomes` | the numbers of a run, the mean of an arm, the scores by task, how runs end |
"""
