"""Classification: predicted labels, and predicted probabilities of classes.

| modules | contents |
|---|---|
| `labels`, `confusion` | validated labels; the confusion matrix |
| `accuracy`, `error_rate`, `balanced_accuracy` | shares of correct labels |
| `f1`, `f1_multilabel`, `cohen_kappa`, `matthews_correlation` | other metrics on labels |
| `scores` | validated scores and probabilities of classes |
| `log_loss`, `weighted_log_loss`, `brier`, `kl_divergence`, `probabilistic_f1` | metrics on probabilities |
| `roc_auc`, `weighted_roc_auc`, `bias_roc_auc`, `average_precision` | metrics on ranked scores |
"""
