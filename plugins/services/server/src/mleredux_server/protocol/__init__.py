"""What all HTTP requests share, in the order in which a request passes.

| modules | contents |
|---|---|
| `request_log`, `middleware` | a request's id and log line; limits and headers |
| `idempotency`, `etags` | repeated requests; responses that have not changed |
| `problems`, `openapi` | errors as documents; the description of all routes |
"""
