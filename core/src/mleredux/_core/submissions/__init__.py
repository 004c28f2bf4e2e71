"""Submissions: their schema, their validation, and accepting an agent's output.

| module | contents |
|---|---|
| `schema` | the schema of a task's submissions, derived from its sample |
| `endpoint`, `rate_limit` | the validation endpoint of a run, used by its agent, and its rate limit |
| `validation`, `children` | whether a submission is well-formed; child processes that check or score |
| `documents` | submissions that are JSON documents |
| `copies` | detection of submissions that copy the sample or the answers |
| `files`, `intake`, `snapshots` | an agent's files: opened without following links, accepted, copied by version |
"""
