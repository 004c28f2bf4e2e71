"""The routes of `/v1`, one module per resource.

| modules | contents |
|---|---|
| `health` | without a token: liveness, readiness and metrics |
| `users`, `tokens`, `projects`, `audit` | accounts, including the caller's own; the audit log |
| `tasks`, `agents`, `sources`, `secrets` | resources that runs use |
| `runs`, `run_actions`, `experiments`, `builds`, `submissions` | jobs |
| `events`, `logs`, `artifacts`, `results`, `webhooks` | output and notifications of jobs |
"""
