"""A technique as one object: its tasks, their preparation, description and grading.

| module | contents |
|---|---|
| `package` | build a technique from the modules of its package |
| `spec` | the technique object, and the tasks derived from it |
| `description` | the task text for the agent |
| `preparation` | public files and truth |
| `grader` | the score of a document |
"""
