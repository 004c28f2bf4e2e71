"""Commands for experiments.

| module | commands |
|---|---|
| `plan` | `experiment check`, `run`, `status`, `extend`, `retry` |
| `analyse` | `experiment analyse`, `report`, `export` |
| `imports` | `experiment` and `experiment import` |
| `compare` | `compare` and `power` |
| `leaderboard` | `leaderboard` and `experiment familiarity` |
| `bisect` | `bisect` |
| `failures` | `runs failures` and `regrade` |
| `options` | options and inputs shared by the commands |
| `there` | experiments on a server |
"""
