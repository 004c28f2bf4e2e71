"""What techniques are made of; `mleredux_techniques.kit` names what is public.

| room | contents |
|---|---|
| `data` | the tables of any competition in one form, and what can be measured of columns, rows and splits |
| `vocabulary` | the terms of documents, and their execution on tables |
| `judging` | reference models, the competition's metric, and scores between a naive and a strong choice |
| `planting` | generated rows and competitions of known truth |
| `declaration` | a technique as one object: its tasks, their preparation, description and grading |

A room imports only those above it.
"""
