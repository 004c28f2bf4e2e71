"""Scores of trivial agents that learn nothing.

| modules | contents |
|---|---|
| `plugin`, `command`, `certify_command` | the agents and the commands `audit floor` and `certify` |
| `floor`, `measurement`, `submissions` | the scores of trivial agents, and their submissions |
| `certificate`, `reference_models` | certificates of generated tasks; the models that they are tried with |
| `documents` | certificates of techniques, whose submissions are documents |
| `panel` | the latest floor on the page of a task |
| `hunter` | an agent that searches for the answers |

mleredux imports `plugin`; `python -m mleredux_audit_floor.hunter` runs inside the sandbox, where mleredux is not
installed.
"""
