"""An agent that submits the sample submission.

`plugin` is the part that mleredux sees; `python -m mleredux_agent_dummy` runs inside the sandbox, without mleredux.
"""
