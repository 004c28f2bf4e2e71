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

from mleredux_llm_protocols.assembly import assembler as assembler
from mleredux_llm_protocols.frames import frames_of as frames_of
from mleredux_llm_protocols.routes import Family as Family
from mleredux_llm_protocols.routes import Kind as Kind
from mleredux_llm_protocols.sse import Splitter as Splitter
from mleredux_llm_protocols.sse import content_of as content_of
from mleredux_llm_protocols.turns import Action as Action
from mleredux_llm_protocols.turns import Turn as Turn
from mleredux_llm_protocols.turns import finish_of as finish_of
from mleredux_llm_protocols.turns import reply_turn as reply_turn
from mleredux_llm_protocols.turns import request_turns as request_turns
from mleredux_llm_protocols.turns import tools_of as tools_of
from mleredux_llm_protocols.usage import Tokens as Tokens
from mleredux_llm_protocols.usage import reported as reported
from mleredux_llm_protocols.usage import tokens_of as tokens_of
