"""Classification: predicted labels, and predicted probabilities of classes.

| modules | contents |
|---|---|
| `labels` | validated labels; the confusion matrix |
| `agreement`, `f1` | metrics on labels |
| `scores` | validated scores and probabilities of classes |
| `probabilities` | metrics on probabilities |
| `curves` | metrics on ranked scores |
"""
