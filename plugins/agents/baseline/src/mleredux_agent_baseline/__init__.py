"""A real baseline for tables, texts and small images, without an LLM."""
