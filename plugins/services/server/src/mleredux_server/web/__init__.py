"""The web pages of `mleredux view` behind the accounts of this server, and a page about the server itself.

| modules | contents |
|---|---|
| `mount`, `site`, `sessions`, `oidc` | the place of the pages; signing in; who is signed in; OpenID providers |
| `source`, `table`, `experiments` | the runs and experiments that a user may see |
| `submissions`, `page` | forms for predictions; the page about the server |
"""
