"""The routes of `/v1`, one module per resource.

| modules | contents |
|---|---|
| `health` | without a token: liveness, readiness and metrics |
| `users`, `tokens`, `projects`, `audit` | accounts, also the caller's own, and who changed what |
| `tasks`, `agents`, `sources`, `secrets` | what runs need |
| `runs`, `run_actions`, `experiments`, `builds`, `submissions` | what is executed |
| `events`, `logs`, `artifacts`, `results`, `webhooks` | what comes of it |
"""
