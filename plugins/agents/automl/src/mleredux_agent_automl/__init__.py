"""Search of pipelines that obeys findings of techniques. mleredux imports `plugin` and `agent`.

| module | contents |
|---|---|
| `advice` | what the context of a run says about the data, as values |
| `pipelines` | the space of pipelines, and a pipeline as a scikit-learn estimator |
| `folds` | folds as advised |
| `table` | the tables as advised, and pipelines fitted to them |
| `search` | the search from start to end |
"""
