"""A pipeline search that applies findings of technique tasks. mleredux imports `plugin`, `agent` and `settings`.

| modules | contents |
|---|---|
| `plugin`, `agent`, `settings` | the registered agent; its declaration; its options |
| `advice` | findings about the data, read from the context of a run |
| `folds` | cross-validation folds as advised |
| `table`, `pipelines` | tables as advised; the pipeline search space, and pipelines as scikit-learn estimators |
| `search` | the search from start to end |
"""
