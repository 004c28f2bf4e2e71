"""Request and response models.

| modules | contents |
|---|---|
| `body`, `units`, `pages` | the base of all requests; durations; pages of lists |
| `accounts`, `tasks`, `sources` | users and projects; installed plugins; uploaded agents and secrets |
| `runs`, `builds`, `submissions` | requests and their results |
| `artifacts`, `webhooks` | results of a run; messages about it |
"""
