"""The stages of a run, each with its built-in implementation.

| modules | contents |
|---|---|
| `context`, `steps` | what each stage works with; what the pipeline does in each |
| `prepare` | first: public and private files of the task |
| `smoke` | a short run that an agent must pass before its first real one |
| `briefing`, `run_agent` | third, after the build: the folder `task`, and the agent at work in its sandbox |
| `data_watch`, `last_line` | whether the agent changed the data; the line of its log that explains a failure |
| `exposure`, `ledger` | whether held-out data came into its hands; what it could know |
| `grade`, `grade_child`, `grade_versions` | fourth: the score, in a child process, also of earlier versions |
| `verify_run`, `regrade`, `jsonl` | a result judged again; a grade repeated; MLE-bench's files |
| `produce` | last: artifacts of plugins, and the manifest |
| `failures`, `interrupt` | from exceptions to causes; a task's own code, stopped |
"""
