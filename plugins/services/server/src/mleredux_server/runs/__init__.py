"""Runs, and what else users create: requested, checked, admitted, created, changed and listed.

| modules | contents |
|---|---|
| `references`, `uploaded`, `sources` | which agents users may name; agents that they upload |
| `requests`, `admission`, `creation` | a request checked; what quotas allow; rows and folders created |
| `builds`, `submissions`, `deadlines` | builds; predictions without an agent; grades that are held back |
| `extension`, `changes` | experiments and runs after their creation |
| `summary`, `lookup`, `lists`, `views` | what a run's folder says; what a caller may see: one, many, as documents |
"""
