"""Accounts: who calls, what they may do, and the secrets that they lend to runs.

| modules | contents |
|---|---|
| `identity`, `accounts` | generated ids and tokens; users, projects and tokens created and changed |
| `security`, `limits` | a caller's token and permissions; rate limits, before and after it is known |
| `vault`, `secrets`, `lent` | secrets of users: encrypted, written, and which values runs were lent |
"""
