"""The building blocks of techniques; `mleredux_techniques.kit` exports the public ones.

| room | contents |
|---|---|
| `data` | the tables of any competition in one form, and measurements of columns, rows and splits |
| `vocabulary` | the vocabulary of documents and its execution on tables |
| `judging` | reference models, the competition's metric, and scores relative to a naive and a strong choice |
| `planting` | generated rows and competitions with known truth |
| `declaration` | a technique as one object: its tasks, their preparation, description and grading |

A room imports only those above it.
"""
