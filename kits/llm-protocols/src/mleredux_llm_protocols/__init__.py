"""Read and write the four protocols of language models without a provider's client.

They are OpenAI's chat completions (`chat`) and responses (`responses`), Anthropic's messages (`messages`), and Google's
generateContent (`generate`). Each module serves all of them:

- `routes`: URLs, keys, lists of models, and errors.
- `turns`: the turns of a conversation in requests and replies, and the tools.
- `usage`: tokens as providers report them.
- `sse`: server-sent events as bytes.
- `frames`: a whole response as the events of a stream.
- `assembly`: the events of a stream as a whole response.

::

    from mleredux_llm_protocols import reported

    tokens = reported("chat", {"usage": {"prompt_tokens": 3, "completion_tokens": 2}})
    assert tokens is not None
"""

from __future__ import annotations

from mleredux_llm_protocols.assembly import assembler
from mleredux_llm_protocols.frames import frames_of
from mleredux_llm_protocols.routes import Family, Kind
from mleredux_llm_protocols.sse import Splitter, content_of
from mleredux_llm_protocols.turns import Action, Turn, finish_of, reply_turn, request_turns, tools_of
from mleredux_llm_protocols.usage import Tokens, reported, tokens_of

__all__ = [
    "Action",
    "Family",
    "Kind",
    "Splitter",
    "Tokens",
    "Turn",
    "assembler",
    "content_of",
    "finish_of",
    "frames_of",
    "reply_turn",
    "reported",
    "request_turns",
    "tokens_of",
    "tools_of",
]
