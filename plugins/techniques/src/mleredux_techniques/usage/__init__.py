"""Gains of techniques in a competition run, from its program with and without them: a reward in addition to the metric.

| module | contents |
|---|---|
| `effect` | a program executed with and without a technique, and the measured gain |
| `command` | `mleredux runs techniques` |
"""
