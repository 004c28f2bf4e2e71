"""A technique as one object: its tasks, their preparation, description and grading.

| module | contents |
|---|---|
| `package` | a technique from the modules of its package |
| `spec` | the object, and the tasks that it derives |
| `description` | the text for the agent |
| `preparation` | public files and truth |
| `grader` | the score of a document |
"""
