"""Runs and other resources that users create: checking requests, admitting, creating, changing and listing them.

| modules | contents |
|---|---|
| `references`, `uploaded`, `sources` | which agents users may use; uploaded agents |
| `requests`, `admission`, `creation` | checking a request; applying quotas; creating rows and folders |
| `builds`, `submissions`, `deadlines` | builds; predictions without an agent; delayed feedback |
| `extension`, `changes` | experiments and runs after their creation |
| `summary`, `lookup`, `lists`, `views` | the state in a run's folder; resources that a caller may see: one, many, as
documents |
"""
