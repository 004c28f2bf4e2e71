"""Analyses of one or more arms.

| module | contents |
|---|---|
| `analysis` | everything that reports and exports show, as one value |
| `leaderboard` | each arm's published measures by split, with both kinds of error |
| `curves` | pass@k and agents' choices of submissions, medals over time and cost |
| `familiarity` | whether an agent does better on tasks that its model knows |
"""
