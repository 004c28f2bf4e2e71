"""An agent that submits the sample submission."""
