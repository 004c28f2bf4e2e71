"""The core commands; each module has the name of its command.

| modules | contents |
|---|---|
| `list`, `show`, `agent`, `plugins`, `doctor` | commands that only show information |
| `prepare` | the data of tasks |
| `run` | starting, following and resuming runs |
| `runs`, `logs`, `artifacts`, `prune` | records and files of runs |
| `validate`, `grade` | checking and grading submissions without an agent |
"""
