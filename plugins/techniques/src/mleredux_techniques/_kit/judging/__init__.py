"""Reference models, the competition's metric, and scores between a naive and a strong choice.

| module | contents |
|---|---|
| `reference` | one model of each family |
| `scorer` | the competition's metric as a loss |
| `plans` | losses of plans on splits, and the best of a panel |
| `study` | what choices are worth: the naive one, the best of a panel, and the recommended one |
| `postprocessing` | steps that change predictions |
| `predictions` | predictions of the reference models, as files and in the truth |
| `results` | facts and efficacy with their figures |
| `marks` | answers compared with facts |
| `comparison` | from losses to a score with its uncertainty |
"""
