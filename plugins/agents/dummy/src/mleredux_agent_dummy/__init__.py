"""An agent that submits the sample submission.

mleredux imports `plugin`; `python -m mleredux_agent_dummy` runs inside the sandbox, without mleredux.
"""
