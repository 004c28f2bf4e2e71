"""Lessons of technique runs, and the texts and skills made from them, for `mleredux-audit-findings`."""

from mleredux_techniques.curriculum import Lesson, collect
from mleredux_techniques.findings.contexts import FORMS, contexts, size
from mleredux_techniques.findings.skill import skill_files, write_skill

__all__ = ["FORMS", "Lesson", "collect", "contexts", "size", "skill_files", "write_skill"]
