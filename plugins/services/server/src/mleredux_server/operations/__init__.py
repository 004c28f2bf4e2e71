"""What administrators need: a server that is started, works, is observed, and can be restored.

| modules | contents |
|---|---|
| `address`, `listener`, `ownership` | where it listens; how it starts; one server a database |
| `health`, `logs`, `metrics`, `traces` | whether it works, and what operators read |
| `audit`, `places` | who changed what; messages for users, without the server's paths |
| `messages`, `deliverer` | webhooks: messages stored and delivered |
| `backup`, `retention` | the database as one portable file; how long ended runs are kept |
"""
