"""The vocabulary of documents and its execution on tables.

| module | contents |
|---|---|
| `document` | base classes, names, counts |
| `imputers` | imputations of missing values |
| `encoders` | encodings of texts |
| `scalers` | scalers of numbers |
| `transforms` | execution of encodings and scalers |
| `preprocessing` | conversion of tables to matrices, with a treatment per column |
| `recommendation` | a recommendation as readable lines |
"""
