"""Pydantic models of the server's responses, where `mleredux.models` has no model or a different one.

- `base`: the common base class, which keeps unknown fields, since newer servers may send some
- `account`: users, tokens, secrets, projects and webhooks
- `catalogue`: tasks, techniques, agents, graders and sandboxes
- `run`: runs, experiments, submissions, builds and their reports
"""
