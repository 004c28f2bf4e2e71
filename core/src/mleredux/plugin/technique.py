"""For authors of techniques, which derive tasks from any suitable task, such as `cv@digits`.

A technique derives a task from another one::

    from mleredux.plugin.task import Task
    from mleredux.plugin.technique import Technique

    def derive(task: Task, variant: str | None) -> Task:
        return task.model_copy(update={"id": f"small@{task.id}", "kind": "technique", "base": task})

    technique = Technique(id="small", title="The same with less data", derive=derive)
"""

from __future__ import annotations

from mleredux._core.submissions.documents import read_document as read_document
from mleredux.models import Technique as Technique
