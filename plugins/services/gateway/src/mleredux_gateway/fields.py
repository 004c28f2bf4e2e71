"""The fields that agents may send to providers, by protocol: whatever is not listed here is refused unless granted.

Deliberately excluded are fields that reach the network, another run or another model, that run code on the provider's
side, or that are billed beyond the maximum set by the gateway (predictions, audio, PDFs, faster tiers).

Sources: the request types of the clients openai 2.54 and anthropic 2.12, and the requests of the agents in this
repository.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mleredux_llm_protocols import Kind


@dataclass(frozen=True)
class Kept:
    """A kind of value without parts."""

    what: str


SCALAR = Kept("a text, a number or a boolean")
COUNT = Kept("a positive integer")
FREE = Kept("any JSON")
SCHEMA = Kept("a JSON schema without references to other documents")
IMAGE = Kept("an image as a data URL (`data:image/…;base64,…`)")
PICTURE = Kept("an image in base64")
OWN = Kept("the id of a response that this run received")


@dataclass(frozen=True)
class Typed:
    """An object whose fields depend on its `type`.

    Attributes:
        default: The type of objects that do not state one.
        types: Fields by type, given as names or patterns.
    """

    default: str | None
    types: dict[str, dict[str, Any]]


def one_of(*values: str) -> frozenset[str]:
    """Return the shape of a text that must be one of these values."""
    return frozenset(values)


def named(*names: str) -> dict[str, Any]:
    """Return the shape of an object with these fields, whose values are texts, numbers or booleans."""
    return dict.fromkeys(names, SCALAR)


# A shape is one of the above; a dict: an object with these fields; a list: a list of this shape; a tuple: any of these.
_CACHE = {"scope": one_of("global", "organization"), "type": one_of("ephemeral"), "ttl": one_of("5m", "1h")}
_CACHED = {"cache_control": _CACHE}
_TEXT = {"text": named("text")}
_PICTURES = one_of("image/png", "image/jpeg", "image/gif", "image/webp")
_FORMAT = {**named("name", "description", "strict"), "schema": SCHEMA}
_RESPONSE_FORMAT = Typed(None, {"text": {}, "json_object": {}, "json_schema": {**_FORMAT, "json_schema": _FORMAT}})
_FUNCTION = {**named("name", "description", "strict"), "parameters": SCHEMA}
_GRAMMAR = Typed(
    None, {"text": {}, "grammar": {**named("syntax", "definition"), "grammar": named("syntax", "definition")}}
)
_CUSTOM = {**named("name", "description", "defer_loading"), "format": _GRAMMAR}
_TIER = one_of("auto", "default", "flex", "standard_only")
_THINKING = Typed(
    None,
    {
        "enabled": {"budget_tokens": COUNT, "display": SCALAR},
        **dict.fromkeys(("adaptive", "between_tools"), named("display")),
        "disabled": {},
    },
)
_CHOICE = (
    SCALAR,
    {
        **named("type", "name", "mode", "disable_parallel_tool_use"),
        **dict.fromkeys(("function", "custom"), named("name")),
        **dict.fromkeys(("tools", "allowed_tools"), FREE),
    },
)
_SAMPLING = named(
    "model", "temperature", "top_p", "top_k", "min_p", "seed", "user", "stream", "frequency_penalty",
    "presence_penalty", "repetition_penalty", "logprobs", "top_logprobs", "verbosity", "safety_identifier",
    "parallel_tool_calls",
    "prompt_cache_key", "prompt_cache_retention",
)  # fmt: skip
_STREAM = named("include_usage", "include_obfuscation")

_SIGNED = {"google": named("thought_signature"), **named("thought_signature")}
_CHAT_CONTENT = (
    SCALAR,
    [
        Typed(
            None,
            {
                "text": {**named("text"), **_CACHED},
                "image_url": {
                    "image_url": (IMAGE, {**named("detail", "format"), "url": IMAGE}),
                    **_CACHED,
                },
                "refusal": named("refusal"),
                "thinking": {
                    **named("signature", "closed"),
                    "thinking": (SCALAR, [Typed("text", {"text": named("text")})]),
                },
            },
        )
    ],
)
_THOUGHTS = [
    Typed(None, {"thinking": {**named("thinking", "signature"), **_CACHED}, "redacted_thinking": named("data")})
]
_CHAT_MESSAGE = {
    **named("role", "name", "tool_call_id", "refusal", "reasoning", "reasoning_content", "prefix"),
    "content": _CHAT_CONTENT,
    **_CACHED,
    "function_call": named("name", "arguments"),
    "annotations": [],
    "tool_calls": [
        {
            **named("id", "type", "index"),
            "function": named("name", "arguments"),
            "custom": named("name", "input"),
            "extra_content": _SIGNED,
            "provider_specific_fields": _SIGNED,
        }
    ],
    "thinking_blocks": _THOUGHTS,
    "provider_specific_fields": {  # by LiteLLM
        **named("refusal", "reasoning", "reasoning_content", "thought_signature"),
        "annotations": [],
        "thinking_blocks": _THOUGHTS,
        "thought_signatures": [SCALAR],
    },
    "reasoning_details": [named("type", "text", "summary", "data", "id", "format", "index", "signature")],
}
_CHAT = {
    **_SAMPLING,
    **dict.fromkeys(("n", "max_tokens", "max_completion_tokens"), COUNT),
    "messages": [_CHAT_MESSAGE],
    "tools": [Typed("function", {"function": {"function": _FUNCTION, **_CACHED}, "custom": {"custom": _CUSTOM}})],
    "tool_choice": _CHOICE,
    "functions": [_FUNCTION],
    "function_call": (SCALAR, named("name")),
    "response_format": _RESPONSE_FORMAT,
    "stop": (SCALAR, [SCALAR]),
    "logit_bias": FREE,
    "modalities": [one_of("text")],
    "reasoning_effort": SCALAR,
    "reasoning": named("effort", "summary", "exclude", "enabled"),
    "thinking": _THINKING,
    "store": one_of(),
    "stream_options": _STREAM,
    "service_tier": _TIER,
}

_OUTPUT = (SCALAR, [Typed(None, {"input_text": named("text"), "input_image": {**named("detail"), "image_url": IMAGE}})])
_TEXTS = [Typed(None, {"*": named("text")})]
_ITEM = named("id", "status", "call_id", "name", "namespace")
_LOCAL = {"environment": Typed(None, {"local": {}})}
_CLIENT_FUNCTION = {
    **_FUNCTION, **named("defer_loading"), "output_schema": SCHEMA, "allowed_callers": [one_of("direct")],
}  # fmt: skip
_RESPONSES_TOOLS = {"function": _CLIENT_FUNCTION, "custom": _CUSTOM}
_RESPONSES_TOOL = Typed(
    None,
    {
        **_RESPONSES_TOOLS,
        "namespace": {**named("name", "description"), "tools": [Typed(None, _RESPONSES_TOOLS)]},
        "tool_search": {**named("description"), "parameters": SCHEMA, "execution": one_of("client")},
        "shell": _LOCAL,
        "local_shell": {},
        "apply_patch": {},
    },
)
_CALLER = {"caller": Typed(None, {"direct": {}})}
_RESPONSES_ITEM = Typed(
    "message",
    {
        "message": {
            **named("role", "id", "status", "phase"),
            "content": (
                SCALAR,
                [
                    Typed(
                        None,
                        {
                            **dict.fromkeys(("input_text", "text"), named("text")),
                            "input_image": {**named("detail"), "image_url": IMAGE},
                            "output_text": {**named("text"), "annotations": [], "logprobs": FREE},
                            "refusal": named("refusal"),
                        },
                    )
                ],
            ),
        },
        "function_call": {**_ITEM, **_CALLER, **named("arguments")},
        "function_call_output": {**_ITEM, **_CALLER, "output": _OUTPUT},
        "custom_tool_call": {**_ITEM, **_CALLER, **named("input")},
        "custom_tool_call_output": {**_ITEM, **_CALLER, "output": _OUTPUT},
        "reasoning": {**named("id", "status", "encrypted_content"), "summary": _TEXTS, "content": _TEXTS},
        "local_shell_call": {**_ITEM, "action": FREE},
        "local_shell_call_output": {**_ITEM, "output": SCALAR},
        "shell_call": {**_ITEM, **_CALLER, **_LOCAL, "action": FREE},
        "shell_call_output": {**_ITEM, **_CALLER, "output": FREE, "max_output_length": SCALAR},
        "apply_patch_call": {**_ITEM, **_CALLER, "operation": FREE},
        "apply_patch_call_output": {**_ITEM, **_CALLER, "output": SCALAR},
        "tool_search_call": {**_ITEM, "arguments": FREE, "execution": one_of("client")},
        "tool_search_output": {**_ITEM, "tools": [_RESPONSES_TOOL], "execution": one_of("client")},
        "additional_tools": {**named("id", "role"), "tools": [_RESPONSES_TOOL]},
        "item_reference": {"id": OWN},
    },
)
_RESPONSES = {
    **_SAMPLING,
    "input": (SCALAR, [_RESPONSES_ITEM]),
    "instructions": SCALAR,
    "max_output_tokens": COUNT,
    "previous_response_id": OWN,
    "tools": [_RESPONSES_TOOL],
    "tool_choice": _CHOICE,
    "text": {**named("verbosity"), "format": Typed(None, {"text": {}, "json_object": {}, "json_schema": _FORMAT})},
    "reasoning": {**named("effort", "summary", "generate_summary", "context"), "mode": one_of("standard")},
    "include": [one_of("reasoning.encrypted_content", "message.output_text.logprobs")],
    "store": SCALAR,
    "background": one_of(),
    "truncation": SCALAR,
    "max_tool_calls": COUNT,
    "client_metadata": FREE,
    "stream_options": _STREAM,
    "service_tier": _TIER,
}  # fmt: skip

_TEXT_BLOCK = {**named("text"), **_CACHED, "citations": []}
_IMAGE_BLOCK = {
    "source": Typed(
        None,
        {"base64": {**named("data"), "media_type": one_of(*(f"image/{k}" for k in ("png", "jpeg", "gif", "webp")))}},
    ),
    **_CACHED,
    "transformations": named("oversized_image"),
}
_INNER = {
    "text": _TEXT_BLOCK,
    "image": _IMAGE_BLOCK,
    "document": {
        **named("title", "context"),
        "source": Typed(None, {"text": named("media_type", "data")}),
        "citations": named("enabled"),
        **_CACHED,
    },
    "tool_reference": {**named("tool_name"), **_CACHED},
}
_BLOCKS = Typed(
    None,
    {
        **_INNER,
        "tool_use": {**named("id", "name"), "input": FREE, **_CACHED, **_CALLER},
        "tool_result": {
            **named("tool_use_id", "is_error"),
            "content": (SCALAR, [Typed(None, _INNER)]),
            **_CACHED,
        },
        "thinking": named("thinking", "signature"),
        "redacted_thinking": named("data"),
    },
)
_ANTHROPIC_TOOL = {
    **named("name", "description", "strict", "eager_input_streaming", "defer_loading"),
    "input_schema": SCHEMA,
    "input_examples": FREE,
    "allowed_callers": [one_of("direct")],
    **_CACHED,
}
_OWN_TOOL = {**named("name", "max_characters"), **_CACHED}
_MESSAGES = {
    **named("model", "temperature", "top_p", "top_k", "stream"),
    "messages": [{**named("role"), "content": (SCALAR, [_BLOCKS])}],
    "system": (SCALAR, [Typed("text", {"text": _TEXT_BLOCK})]),
    "max_tokens": COUNT,
    "stop_sequences": [SCALAR],
    "tools": [
        Typed(
            "custom",
            {"custom": _ANTHROPIC_TOOL, **dict.fromkeys(("bash_20*", "text_editor_20*", "memory_20*"), _OWN_TOOL)},
        )
    ],
    "tool_choice": _CHOICE,
    "thinking": _THINKING,
    "metadata": named("user_id"),
    **_CACHED,
    "output_config": {
        **named("effort"), "format": _RESPONSE_FORMAT, "task_budget": named("type", "total", "remaining"),
    },
    "output_format": _RESPONSE_FORMAT,
    "context_management": {
        "edits": [
            Typed(
                None,
                {
                    "clear_tool_uses_20*": dict.fromkeys(
                        ("trigger", "keep", "clear_at_least", "exclude_tools", "clear_tool_inputs"), FREE
                    ),
                    "clear_thinking_20*": {"keep": FREE},
                },
            )
        ]
    },
    "diagnostics": named("previous_message_id"),
    "service_tier": _TIER,
    "speed": one_of("standard"),
}  # fmt: skip

_GOOGLE_CONTENT = {
    **named("role"),
    "parts": [
        {
            **named("text", "thought", "thoughtSignature"),
            "inlineData": {"mimeType": _PICTURES, "data": PICTURE},
            "functionCall": {**named("id", "name"), "args": FREE},
            "functionResponse": {**named("id", "name"), "response": FREE},
        }
    ],
}
_GOOGLE_FUNCTION = {
    **named("name", "description"),
    **dict.fromkeys(("parameters", "parametersJsonSchema", "response", "responseJsonSchema"), SCHEMA),
}
_GENERATE = {
    **named("model", "stream"),
    "contents": [_GOOGLE_CONTENT],
    "systemInstruction": _GOOGLE_CONTENT,
    "tools": [{"functionDeclarations": [_GOOGLE_FUNCTION]}],
    "toolConfig": {"functionCallingConfig": {**named("mode"), "allowedFunctionNames": [SCALAR]}},
    "safetySettings": [named("category", "threshold")],
    "generationConfig": {
        **named(
            "temperature", "topP", "topK", "seed", "presencePenalty", "frequencyPenalty", "responseMimeType",
            "responseLogprobs", "logprobs", "mediaResolution",
        ),
        **dict.fromkeys(("maxOutputTokens", "candidateCount"), COUNT),
        **dict.fromkeys(("responseSchema", "responseJsonSchema"), SCHEMA),
        "stopSequences": [SCALAR],
        "responseModalities": [one_of("TEXT")],
        "thinkingConfig": named("includeThoughts", "thinkingBudget", "thinkingLevel"),
    },
}  # fmt: skip

FIELDS: dict[Kind, dict[str, Any]] = {
    "chat": _CHAT,
    "responses": _RESPONSES,
    "messages": _MESSAGES,
    "generate": _GENERATE,
}

BETAS = (
    "claude-code-20*", "interleaved-thinking-*", "fine-grained-tool-streaming-*", "prompt-caching-*",
    "extended-cache-ttl-*", "token-efficient-tools-*", "output-128k-*", "context-management-*", "structured-outputs-*",
    "effort-*", "adaptive-thinking-*", "tool-examples-*", "context-1m-*", "redact-thinking-*", "task-budgets-*",
    "responses=*",
)  # fmt: skip
"""Accepted values of `anthropic-beta` and `openai-beta`; others are dropped, and noted."""
