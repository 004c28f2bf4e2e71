"""Statistical inference over runs.

| module | contents |
|---|---|
| `errors` | standard errors, intervals of means, adjusted p-values |
| `resampling` | sign flips, permutations, and the intervals that agree with them |
| `comparison`, `difference` | the paired comparison of two arms, and its result |
| `power` | the differences that a design detects |
| `ranking` | the ranking of several arms |
"""
