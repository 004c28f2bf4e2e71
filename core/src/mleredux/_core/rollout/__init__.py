"""The standard trace of a run: ATIF documents (v1.8; v1.0 to v1.8 are read), their checker and JSON schema.

The Agent Trajectory Interchange Format is Harbor's (harborframework.com/docs/trajectory-format). What is
particular to ML engineering goes into its `extra` fields, by the convention of `StepExtra` and `RunExtra`.
"""
