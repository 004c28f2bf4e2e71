"""Regression: predicted numbers.

| modules | contents |
|---|---|
| `values` | validated predictions, aligned with the truth |
| `mae`, `median_absolute_error`, `mape`, `group_log_mae` | absolute and relative errors |
| `mse`, `rmse`, `mcrmse`, `rmsle` | squared errors |
| `r2`, `correlation` | coefficient of determination; Pearson's and Spearman's correlation |
"""
