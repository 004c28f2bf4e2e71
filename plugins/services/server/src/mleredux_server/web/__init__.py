"""The web pages of `mleredux view`, with the accounts of this server, and a page about the server itself.

| modules | contents |
|---|---|
| `mount`, `site`, `sessions`, `oidc` | mounting the pages; signing in; sessions; OpenID providers |
| `source`, `table`, `experiments` | the runs and experiments that a user may see |
| `submissions`, `page` | forms for predictions; the page about the server |
"""
