"""Submissions: their schema, whether one is well-formed, and accepting an agent's output.

| module | contents |
|---|---|
| `schema` | the schema of a task's submissions, from its sample |
| `endpoint` | the validation endpoint of a run, for its agent |
| `validation`, `children` | whether a submission is well-formed; child processes that check or score |
| `documents` | submissions that are JSON documents |
| `copies` | whether a submission is a copy of a file that everyone has, or nobody should have |
| `files`, `intake`, `snapshots` | an agent's files: opened through no link, accepted, kept by version |
"""
