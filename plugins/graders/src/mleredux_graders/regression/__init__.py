"""Regression: predicted numbers.

| modules | contents |
|---|---|
| `values` | validated predictions, aligned with the truth |
| `errors` | absolute, squared and relative errors, by row, group or column; coefficient of determination |
| `correlation` | Pearson's and Spearman's correlation |
"""
