"""Handling common to all HTTP requests, in the order in which a request passes.

| modules | contents |
|---|---|
| `request_log`, `middleware` | a request's id and log line; limits and headers |
| `requests`, `etags` | HEAD, `If-Match`, unknown parameters; responses that have not changed |
| `idempotency` | repeated requests |
| `problems`, `openapi` | errors as documents; the description of all routes |
"""
