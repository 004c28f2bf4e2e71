"""Generated rows and competitions of known truth.

| module | contents |
|---|---|
| `seeds` | secret and public seeds |
| `generation` | new rows that resemble those of a dataset |
| `instances` | helpers of the techniques' own planting |
| `composition` | one instance with something to find for many techniques |
| `competition` | planted competitions: declaration, files, leaderboard |
| `synthetic` | competitions without any origin |
| `shadow` | competitions on held-back training rows |
| `pictures` | pictures drawn from generated thumbnails |
"""
