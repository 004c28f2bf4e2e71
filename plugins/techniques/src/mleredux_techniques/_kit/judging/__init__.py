"""Reference models, the competition's metric, and scores relative to a naive and a strong choice.

| module | contents |
|---|---|
| `reference` | one model per family |
| `scorer` | the competition's metric as a loss |
| `plans` | losses of plans on splits, and the best plan of a panel |
| `study` | the value of choices: the naive one, the best of a panel, and the recommended one |
| `postprocessing` | steps that change predictions |
| `predictions` | predictions of the reference models, in public files and in the truth |
| `marks` | facts and efficacy with their figures; comparison of answers with facts |
| `comparison` | from losses to a score with its uncertainty |
"""
