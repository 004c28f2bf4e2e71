"""The stages of a run, each with its built-in implementation.

| modules | contents |
|---|---|
| `context`, `steps` | what each stage works with, interrupted or not; what the pipeline does in each |
| `prepare` | first: public and private files of the task |
| `smoke` | a short run that an agent must pass before its first real one |
| `briefing`, `run_agent` | third, after the build: the folder `task`, and the agent at work in its sandbox |
| `ledger` | what the agent could know; whether it saw held-out data, or changed the data |
| `grade`, `grade_versions` | fourth: the score, also of earlier versions |
| `verify_run`, `regrade`, `jsonl` | a result judged again; a grade repeated; MLE-bench's files |
| `produce` | last: artifacts of plugins, and the manifest |
| `failures` | from exceptions to causes; the line of a log that tells why |
"""
