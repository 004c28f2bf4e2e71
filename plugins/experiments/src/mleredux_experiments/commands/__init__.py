"""Commands for experiments, one module each.

| module | commands |
|---|---|
| `group` | `experiment` |
| `plan` | `experiment check`, `run`, `status`, `extend`, `retry` |
| `analyse` | `experiment analyse`, `report`, `export` |
| `imports`, `familiarity` | `experiment import`, `experiment familiarity` |
| `compare`, `leaderboard`, `power`, `bisect` | the commands with these names |
| `failures`, `regrade` | `runs failures`, `regrade` |
| `options` | options and inputs shared by the commands |
| `there` | experiments on a server |
"""
