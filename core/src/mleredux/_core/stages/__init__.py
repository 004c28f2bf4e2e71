"""The stages of a run, each with its built-in implementation.

| modules | contents |
|---|---|
| `context`, `steps` | the input of each stage, and interruptions; the pipeline's work in each stage |
| `prepare` | first stage: public and private files of the task |
| `briefing`, `run_agent` | third stage, after the build: the folder `task`; running the agent in its sandbox |
| `dev_scores` | scores during a run on rows held back from the training data |
| `held_out`, `ledger` | copies of held-out files; the access of the agent, and whether it saw or changed such data |
| `grade`, `grade_versions` | fourth stage: the score, including those of earlier versions |
| `produce` | last stage: artifacts of plugins, and the manifest |
| `failures` | causes of exceptions; the line of a log that shows the reason |
"""
