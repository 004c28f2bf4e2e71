"""Operations for administrators: starting, checking, observing and restoring a server.

| modules | contents |
|---|---|
| `address`, `listener`, `ownership` | the server's address; its start; one server per database |
| `health`, `logs`, `metrics`, `traces` | health checks, logs, metrics and traces |
| `administration` | users, tokens and projects, changed directly in the database |
| `audit`, `places` | the audit log; messages for users, without the server's paths |
| `messages`, `deliverer` | webhooks: storing and delivering messages |
| `backup`, `retention` | the database as one portable file; how long ended runs are kept |
"""
