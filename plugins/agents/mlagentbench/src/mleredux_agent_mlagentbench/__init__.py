"""MLAgentBench's ResearchAgent as an agent.

mleredux imports `plugin`; `driver` runs inside the sandbox, without mleredux.
"""
