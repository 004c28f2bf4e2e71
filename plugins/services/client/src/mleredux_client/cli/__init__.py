"""Commands on a server: those of mleredux with `--server URL`, and those that only work with a server.

| modules | contents |
|---|---|
| `login`, `servers` | `mleredux login`, `logout` and `whoami`; the selected server and its token |
| `account`, `webhooks` | `mleredux account`: tokens, users, projects, quotas and webhooks |
| `building`, `runs` | `mleredux agent build`; `mleredux runs wait`, `retry` and `change` |
| `backend` | the server as the backend of mleredux's own commands |
| `context` | the server of the current command line; converting its errors to mleredux's |
| `service` | requests to the server |
| `watching`, `records` | progress of runs on the server; formatting runs for output |
"""
