"""A real baseline for tables, texts and small images, without an LLM.

`plugin` is the part that mleredux sees. Everything else runs inside the sandbox and never imports mleredux.
"""
