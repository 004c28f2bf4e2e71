"""What a server sends that `mleredux.models` has not, or has otherwise, as pydantic models.

- `base`: the class of all: it keeps unknown fields, which newer servers send
- `account`: users, tokens, secrets, projects and webhooks
- `catalogue`: tasks, techniques, agents, graders and sandboxes
- `run`: runs, experiments, submissions, builds and their reports
"""
