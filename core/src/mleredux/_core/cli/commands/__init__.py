"""The commands of core: each module has the name of its command.

| modules | contents |
|---|---|
| `list`, `show`, `agent`, `plugins`, `doctor` | commands that run nothing |
| `prepare` | the data of tasks |
| `run` | runs: started, followed, resumed |
| `runs`, `logs`, `artifacts`, `prune` | what runs have left |
| `validate`, `grade` | submissions without an agent |
"""
