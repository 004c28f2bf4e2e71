"""What `mleredux-findings` uses of this package: lessons of technique runs, and the texts and skills made from them."""

from mleredux_techniques.curriculum import Lesson, collect
from mleredux_techniques.findings.contexts import FORMS, contexts, size
from mleredux_techniques.findings.skill import skill_files, write_skill

__all__ = ["FORMS", "Lesson", "collect", "contexts", "size", "skill_files", "write_skill"]
