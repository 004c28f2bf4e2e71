"""Request and response models.

| modules | contents |
|---|---|
| `body`, `units`, `pages` | what all requests share; durations; pages of lists |
| `accounts`, `tasks`, `sources` | users and projects; what is installed; what users upload |
| `runs`, `builds`, `submissions` | what is requested |
| `artifacts`, `webhooks` | results of a run; messages about it |
"""
