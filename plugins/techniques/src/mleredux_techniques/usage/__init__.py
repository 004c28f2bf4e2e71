"""Which techniques a run of a competition used: a reward for how it was worked, beside the metric.

| module | contents |
|---|---|
| `code` | what the run's programs do: folds, encodings |
| `effects` | what the predictions show: columns that they depend on |
| `judgement` | the rules, and the typed result |
| `command` | `mleredux runs techniques` |
"""
