"""MLAgentBench's ResearchAgent as an agent.

`plugin` is the part that mleredux sees; `driver` runs inside the sandbox, without mleredux.
"""
