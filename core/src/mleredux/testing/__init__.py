"""The conformance kit: what every plugin is held to, ours and third parties'."""
