"""What techniques gained in a run of a competition, by its program with and without them: a reward beside the metric.

| module | contents |
|---|---|
| `effect` | a program executed with and without a technique, and the measured gain |
| `command` | `mleredux runs techniques` |
"""
