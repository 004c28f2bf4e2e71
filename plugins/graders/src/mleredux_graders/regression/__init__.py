"""Regression: predicted numbers.

| modules | contents |
|---|---|
| `values` | validated predictions, aligned with the truth |
| `errors` | absolute, squared and relative errors, also of groups and several columns; coefficient of determination |
| `correlation` | Pearson's and Spearman's correlation |
"""
