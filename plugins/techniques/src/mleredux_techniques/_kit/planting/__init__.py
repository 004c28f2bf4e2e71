"""Generated rows and competitions with known truth.

| module | contents |
|---|---|
| `seeds` | secret and public seeds |
| `generation` | new rows that resemble those of a dataset |
| `instances` | helpers for the planting code of techniques |
| `composition` | one instance that has findings for many techniques |
| `competition` | planted competitions: declaration, files, leaderboard |
| `synthetic` | competitions without a base |
| `micro` | small ones that are equal on every platform |
| `shadow`, `dev` | competitions on held-out training rows, alone or within a run |
| `pictures` | images drawn from generated thumbnails |
"""
