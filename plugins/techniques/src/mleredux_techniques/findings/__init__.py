"""The findings of technique runs, as contexts for the next agent; `mleredux-audit-findings` measures whether they help.

| module | contents |
|---|---|
| `contexts` | the texts of the arms: graded and unfiltered findings, a sham, a generic checklist |
| `skill` | findings as an Agent Skill: a folder with `SKILL.md` and two or three modules |
"""
