"""The terms of documents, and their execution on tables.

| module | contents |
|---|---|
| `document` | base classes, names, counts |
| `imputers` | imputations of missing values |
| `encoders` | encodings of texts |
| `scalers` | scalers of numbers |
| `transformers` | what scikit-learn lacks of these |
| `preprocessing` | from a table to a matrix, with a treatment per column |
| `recommendation` | a recommendation as readable lines |
"""
