"""The asynchronous client, from which the synchronous one (`mleredux_client._sync`) is generated.

| modules | contents |
|---|---|
| `client` | the client |
| `offers`, `grades`, `builds` | its methods: catalogue of a server; grading without an agent; builds |
| `admin` | its administration: tokens, users, projects, secrets and webhooks |
| `runs`, `experiments`, `work`, `resources` | runs; experiments; submissions and builds; their common base class |
| `artifacts` | artifacts of a run: listed, read, downloaded |
| `uploads` | upload of local agents |
| `polling`, `streams`, `pages` | waiting; live streams, resumed after interruptions; paginated lists |
| `http` | HTTP requests with retries and errors |
"""
