"""Models of requests, and of responses that only the server needs; `mleredux_http_api` has the others.

| modules | contents |
|---|---|
| `body`, `units`, `pages` | the base of all requests; durations; pages of lists |
| `accounts`, `tasks`, `sources` | users and projects; tasks and agents in full; uploaded agents and secrets |
| `runs`, `builds`, `submissions` | requests and their results |
| `artifacts`, `webhooks` | results of a run; messages about it |
"""
