"""Statistical inference over runs.

| module | contents |
|---|---|
| `errors` | standard errors, intervals of means, adjusted p-values |
| `resampling` | variance components, sign flips and permutations |
| `comparison`, `difference` | the paired comparison of two arms, and its result |
| `power` | what a design detects |
| `ranking` | the order of several arms |
"""
