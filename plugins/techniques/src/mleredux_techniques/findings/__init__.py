"""What technique runs teach, as contexts for the next agent, and the experiment that measures whether they help.

| module | contents |
|---|---|
| `contexts` | the texts of the arms: graded and unfiltered findings, a sham, a generic checklist |
| `skill` | findings as an Agent Skill: a folder with `SKILL.md` and two or three modules |
| `study` | the experiment: technique runs, contexts, arms |
| `registration` | what a repository's history says about when a plan was written |
| `report` | the page of an experiment, with negative transfer by task |
| `study_command` | `mleredux experiment findings` |
"""
