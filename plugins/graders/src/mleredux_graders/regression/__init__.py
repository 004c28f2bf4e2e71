"""Regression: predicted numbers.

| modules | contents |
|---|---|
| `values` | validated predictions, aligned with the truth |
| `errors` | absolute, squared and relative errors; coefficient of determination |
| `group_log_mae`, `mcrmse` | errors of groups of rows, and of several columns |
| `correlation` | Pearson's and Spearman's correlation |
"""
