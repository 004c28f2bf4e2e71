# ruff: noqa: E501 - one family of messages a line
"""What lines show of a failure: words that a line has, and what it must match besides; by category and kind."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from mleredux_experiments.failures.evidence import Evidence


@dataclass(frozen=True)
class Sign:
    """A family of messages.

    Attributes:
        words: In small letters; a line needs one of them. They are searched for first, since that is fast.
        pattern: What it must match besides, if there is one.
    """

    words: tuple[str, ...]
    pattern: re.Pattern[str] | None = None

    def __call__(self, line: str, small: str) -> bool:
        """Whether a line, given in small letters too, is such a message."""
        return any(map(small.__contains__, self.words)) and (self.pattern is None or bool(self.pattern.search(line)))


def _any(*words: str) -> Sign:
    return Sign(words)


def _like(words: str, pattern: str) -> Sign:
    return Sign(tuple(words.split("|")), re.compile(pattern, re.IGNORECASE))


def _errno(*numbers: int) -> Sign:
    """System errors, as Python, Rust and C programs print them."""
    wanted = "|".join(map(str, numbers))
    return _like("errno|os error|kind:", rf"(?:\[?errno(?: =)?|os error|code:) (?:{wanted})\b")


_FAILS = r"(?:fail|error|unable|cannot|can't|could not|couldn't|no longer|exception|exhausted|refused|denied|invalid)"
_STATUS = r"(?:40[0-9]|413|422|429|5[0-2][0-9])"
_MODELS = (
    r"(?:\bLLM\b|language model|chat/completions|/v\d/(?:messages|responses)|generateContent|bedrock|api\.openai|anthropic|"
    r"openrouter|together\.(?:xyz|ai)|generativelanguage|mistral\.ai|groq|deepseek|router\.huggingface|cohere|fireworks|"
    r"vertexai|\bollama|vllm)"
)
_MODEL_WORDS = (
    "llm|language model|chat/completions|/messages|/responses|generatecontent|bedrock|api.openai|anthropic|openrouter|"
    "together|generativelanguage|mistral|groq|deepseek|router.huggingface|cohere|fireworks|vertexai"
)
_CLIENTS = (
    "openai|anthropic|litellm|groq|mistralai|cohere|google.genai|google.api_core|google.generativeai|ollama|together|"
    "vertexai|fireworks|replicate|instructor|langchain_\\w+|dashscope|zhipuai|xai_sdk"
)
_REFUSED = r"(?:invalid|incorrect|missing|expired|not (?:set|valid|found|provided|configured)|must be set|leaked|revoked|unable|no )"

API: Mapping[str, tuple[Sign, ...]] = {
    "context length": (
        _like("context", r"context[ _]?(?:length|window|size|limit).*(?:exceed|\d|too)|ContextWindow\w*Error"),
        _like("too long", r"(?:prompt|input|request|messages?)\b.{0,60} too long"),
        _like("token", r"too many tokens|tokens?\b.{0,40}exceeds?\b|exceed\w{0,8}.{0,40}\btokens?\b|max_(?:completion_)?tokens.*too"),
        _like("toolongprompt|promptis|prompttoo|promptlength", r"Prompt\w*(?:Error|Exception)"),
        _any("max_model_len"),
    ),
    "content filter": (
        _any("content_filter", "content management policy", "contentpolicyviolation", "responsibleaipolicy"),
        _like("content|safety|blocked", r"content filter\w*|blocked by .*safety|safety settings|prohibited_content"),
    ),
    "budget": (
        _like("budget", r"exceed\w* ?budget|over budget|crossed budget|budget\b.*(?:exceeded|used up)|(?:maximum|max) budget\b"),
        _like("cost", r"\bcost limit\b|exit_cost|cost \S+ exceeds"),
        _like("limitsexceeded|maximum iteration|step limit", r"LimitsExceeded|maximum iteration|step limit (?:reached|exceeded)"),
        _like("limit|credits", r"(?:exceed\w*|reached|hit|used (?:up|all))\b.{0,60}\b(?:(?:usage|spending|key|quota|credit) limit|credits)\b|\b(?:usage|spending|key|quota|credit) limit (?:was |has been )?(?:exceeded|reached)"),
        _any("credit balance is", "insufficient balance", "insufficient credits", "insufficient_quota", "current quota"),
        _like("402", r"\b402\b.*(?:Client Error|Payment Required)"),
    ),
    "rate limit": (
        _like("rate limit|rate_limit|ratelimit|rate-limit", r"rate.?limit.*(?:exceeded|reached)|(?:exceed\w*|reached|hit)\b.{0,30}\brate.?limit|RateLimit\w*Error|rate_limit_\w+"),
        _like("429", r"\b429\b.{0,30}(?:rate.?limit|quota exceeded|exhausted|too many|no deployments)"),
        _any("too many requests", "throttlingexception"),
    ),
    "authentication": (
        _like("api key|api_key|api-key|apikey|x-api-key", rf"{_REFUSED}.{{0,200}}api[ _-]?key|api[ _-]?key.{{0,200}}{_REFUSED}|Error.*_API_KEY\b"),
        _like("bearer|auth_token|authentication", rf"bearer auth|auth_token|authentication_error|{_REFUSED}\w* authentication method"),
        _any("unable to locate credentials", "access token could not be refreshed", "not have access to the model"),
    ),
    "overloaded": (
        _like("overloaded", r"overloaded_error|OverloadedError|model is overloaded|Exception - Overloaded"),
    ),
    "error": (
        _like("error code:|'type'|\"type\"", r"Error code: \d{3} - |['\"]type['\"]: ?['\"]\w+_error['\"]"),
        _like("status|code", r"['\"]code['\"]: ?\d{3}\b.*['\"]status['\"]: ?['\"][A-Z_]+['\"]"),
        _like("operation", r"when calling the (?:InvokeModel\w*|Converse\w*) operation"),
        _like("bedrock", rf"bedrock.*{_FAILS}"),
        _like("error|exception|timeout|exceptions", rf"^\W*(?:\w+: )?(?:{_CLIENTS})\.(?:[\w.]*(?:Error|Exception|Timeout)\b|exceptions\.\w+:)"),
        _like(_MODEL_WORDS, rf"^(?=.*{_MODELS}).*(?:\b{_STATUS}\b.{{0,3}}[\s:'\"(\[{{<-]*[A-Z]|\b(?:status|HTTP|code)\W{{0,3}}{_STATUS}\b)"),
        _like("error", r"\b(?:LLM\w*|API(?:Connection|Status|Timeout|Response)|ServiceUnavailable)Error\b"),
        _like("api error", r"API error:? \W?(?:\d{3}\b|request|connection|occurred)"),
        _like("statuscode.", r"StatusCode\.(?:PERMISSION_DENIED|RESOURCE_EXHAUSTED|UNAVAILABLE|UNAUTHENTICATED|DEADLINE_EXCEEDED)"),
        _like("model|llm|deployment|endpoint", r"\b(?:LLM|model)\b.{0,40}(?:empty response|no (?:response|choices|content))|deployment .*does not exist|DeploymentNotFound|no endpoints found"),
        _any("invalid_request_error", "stream disconnected before completion"),
    ),
}  # fmt: skip

MEMORY = (
    _like("out of memory|outofmemory", r"OutOfMemory|(?:error|exception|exhausted|cuda|alloc|kill|\bran\b|running|jobs?:).*out of memory|out of memory(?:: kill| error|[ :]+(?:while|alloc|trying|request))"),
    _any("bad_alloc", "oom when allocating", "insufficient shared memory", "_alloc_failed", "cudaerrormemoryallocation"),
    _any("cannot allocate vector", "deadkernelerror", "terminatedworkererror", "excessive memory usage"),
    _any("resourceexhaustederror", "brokenprocesspool", "killedworker", "java heap space", "gc overhead limit"),
    _like("oom", r"\boom[-_ ]?kill|oomkilled"),
    _like("alloc", r"(?:cannot|can't|could not|unable to|fail(?:ed|ure)? to) alloc|memory allocation (?:of \d+ bytes )?(?:still )?(?:failed|error)|malloc of size"),
    _like("memory", r"memory.{0,40}\bexceed|exceed\w{0,8}.{0,40}\bmemory|not enough memory|more memory than|^\s*MemoryError|\.\w*MemoryError"),
    _like("killed", r"^\s*Killed\s*$|sh: (?:line )?\d+: +\d+ Killed\b|\d+ Killed  |[\])]\s*Killed\s*$|by signal: Killed|Killed process"),
    _like("137", r"\b(?:exit|return|status|code)\w*(?: with)?(?: exit)?(?: code| status)?[:= ]+137\b"),
    _like("sigkill|exitcode|exit code|signal 9", r"SIGKILL|exit ?code: ?-9\b|signal 9\b"),
    _like("resource_exhausted", r"RESOURCE_EXHAUSTED: (?:Out of|Fail|Attempt|\w*alloc)"),
    _like("bus error", r"bus error"),
    _errno(12),
)  # fmt: skip
DISK = (
    _any("no space left on device", "disk quota exceeded", "disk is full", "storagefull"),
    _errno(27, 28, 122),
)
PROCESSES = (
    _any("can't start new thread", "resource temporarily unavailable", "too many open files", "fork: retry"),
    _errno(11, 23, 24),
)
TIME = (
    _like("time limit", r"due to time limit|exceed\w* (?:the )?time limit|time limit (?:was )?(?:exceeded|reached)"),
    _like("timed out", r"(?:command|cell|execution|process|kernel|script|step)\b.{0,200} timed out|timed out (?:after \d|and has been killed)"),
    _like("timeoutexpired|celltimeouterror|sending signal term", r"TimeoutExpired|CellTimeoutError|sending signal TERM"),
    _like("124", r"\bexit(?:ed)?(?: with)?(?: code| status)?[:= ]+124\b"),
)  # fmt: skip
DEVICE = (
    _like("no nvidia|no cuda|no opencl|no gpu", r"\bno (?:NVIDIA driver|CUDA GPUs?|CUDA-capable|OpenCL device|GPUs? (?:was |were )?(?:found|available|detected))"),
    _any("cuda.is_available() is false", "cuda_error_no_device", "cudaerrornodevice"),
)  # fmt: skip

_LIBRARY = (
    r"\b(?:NDFrame|DataFrame|Series|\w*Index|\w*GroupBy|\w*(?:Classifier|Regress(?:or|ion)|Encoder|Imputer|Scaler|Booster|"
    r"Trainer|TrainingArguments|CV|SVC|SVR|Dataset|Vectorizer|Transformer|Forest|KMeans|PCA))"
)
_REMOVED_KEYWORDS = (
    "affinity|base_estimator|categorical_feature|date_parser|early_stopping_rounds|error_bad_lines|eval_metric|evals_result|"
    "evaluation_strategy|force_all_finite|infer_datetime_format|line_terminator|mangle_dupe_cols|multi_class|needs_proba|"
    "no_cuda|normalize|numeric_only|presort|squared|squeeze|use_auth_token|use_label_encoder|verbose_eval|warn_bad_lines"
)
_REMOVED_METHODS = (
    "append|applymap|as_matrix|backfill|bool|first|ftypes|get_feature_names|get_value|is_copy|is_monotonic|iteritems|ix|"
    "last|lookup|mad|pad|set_value|slice_shift|swapaxes|tshift|week|weekofyear"
)
_INDEX_WORDS = "pypi.org|pythonhosted|anaconda|deb.debian|archive.ubuntu|cran.|registry.npmjs"
_INDEXES = (
    r"(?:pypi\.org|pythonhosted|conda\.anaconda|repo\.anaconda|deb\.debian|archive\.ubuntu|cran\.|registry\.npmjs)"
)

PACKAGE = (
    _any("modulenotfounderror", "importerror: ", "no module named", "distributionnotfound", "versionconflict"),
    _any("no matching distribution found", "could not find a version", "packagesnotfounderror", "resolutionimpossible"),
    _any("unsatisfiable", "failed building wheel", "could not build wheel", "metadata-generation-failed", "condahttperror"),
    _any("cannot open shared object file", "undefined symbol", "could not be loaded", "binary incompatib"),
    _any("there is no package called", "cannot find module", "conflicting dependenc", "dependency conflicts"),
    _any("externally-managed-environment", "requires a different python", "no solution found when resolving"),
    _any("not available from current channels", "missing from the target environment", "resolvepackagenotfound"),
    _any("could not solve for environment", "not found in current path", "seem to be installed", "can't be installed"),
    _any("_array_api not found", "compiled using numpy", "compiled against numpy", "compiled with different"),
    _any("unable to locate package", "has no installation candidate", "unable to fetch some archives", "cannot find -l"),
    _any("optional dependency", "please install", "could not install packages", "build backend returned an error"),
    _any("no kernel image is available", "not compiled with cuda", "attributeerror: module '", "__sklearn_tags__"),
    _like("removed in|no longer supported|been removed", r"was removed in .*\d|has been removed|no longer supported"),
    _like("driver", r"driver .*(?:too old|is insufficient)"),
    _like("find", r"(?:can't|cannot|could not|couldn't|unable to) find .{0,30}\b(?:compiler|library|headers?|pkg-config|shared object)\b"),
    _like("not installed", r"\b(?:is|are|was|were) not installed"),
    _like("failed to build", r"failed to build (?:[`'\"\w].*(?:==|[`'\"]|wheel)|installable)"),
    _like("generating", r"error\w* generating package metadata"),
    _like("install ", r"(?:pip|conda|apt|apt-get) install .*[`'\"]|Error: .*(?:pip|conda) install"),
    _like("' not found", r"version [`'](?:GLIBC|GLIBCXX|CXXABI)_[\d.]+' not found"),
    _like("not found", r"\b(?:Rscript|julia|python3?|pip3?|uv|conda|mamba|nvcc|gcc|g\+\+|c?make): (?:command )?not found"),
    _like("unexpected keyword", rf"{_LIBRARY}\.(?!forward)\w+\(\) got an|argument '(?:{_REMOVED_KEYWORDS})'"),
    _like("object", rf"'(?:DataFrame|Series|\w*Index|\w*Properties|\w*Vectorizer|\w*Encoder)' (?:object )?has no attribute '(?:{_REMOVED_METHODS})'"),
    _like(_INDEX_WORDS, rf"^(?=.*{_FAILS}).*{_INDEXES}"),
    # A package that can't be imported, whatever the exception.
    _like("in <module>", r"(?:site|dist)-packages/\S+(?<!/__main__)(?<!/run)(?<!/launch)(?<!/cli)(?<!/main)\.py\", line \d+, in <module>"),
)  # fmt: skip
NETWORK = (
    _like("resolv|resolution|lookup", r"could(?:n't| not) resolve (?:host|proxy)|unable to resolve host|failure in name resolution|failed to lookup address|name resolution"),
    _any("name or service not known", "nodename nor servname", "getaddrinfo failed", "max retries exceeded with url"),
    _any("certificate_verify_failed", "certificate verify failed", "tunnel connection failed", "proxyerror"),
    _any("gated repo", "gatedrepoerror", "url fetch failure", "couldn't connect to 'http", "network is unreachable"),
    _any("urlopen error", "unable to establish ssl connection", "connection reset by peer", "no route to host"),
    _like("http", r"HTTP(?:Status)?Error:? (?:HTTP Error )?(?:40[137]|5\d\d)"),
    _any("remote end closed connection", "failed to establish a new connection", "localentrynotfounderror"),
    _like("kaggle", rf"kaggle.*(?:\b{_STATUS}\b|unauthor|forbidden|not authenticated|credential)|could not find kaggle|\b{_STATUS}\b.*kaggle"),
    _like("4", r"\b40[137] (?:- )?(?:Client Error|(?:Forbidden|Unauthorized)\b)"),
    _like("reach", r"(?:couldn't|could not|cannot|can't|unable to|failed to) reach .*(?:hub|host|http|server|timeout)"),
    _like("connect", r"(?:failed|unable|could not|couldn't) (?:to )?connect to .*(?:refused|port|http|timed)|unable to access 'https?:"),
    _like("http", r"(?:Connection|Read)TimeoutError|(?:Connect|Read) ?time(?:out|d out)\b.*http|https?:.*(?:Connection refused|Read timed out)"),
    _errno(-2, -3, 101, 104, 110, 111, 113),
)  # fmt: skip
STUCK = (_like("loop", r"stuck in (?:a )?loop|StuckInLoopError"),)


def last_line(evidence: Evidence, signs: Iterable[Sign]) -> tuple[str, str] | None:
    """The last line of a run that shows one of some signs, and where it is; warnings show nothing."""
    there = [sign for sign in signs if any(map(evidence.small_text.__contains__, sign.words))]
    for line, small, where in reversed(evidence.lines) if there else ():
        if any(sign(line, small) for sign in there) and "arning" not in line:
            return line, where
    return None


def kind_of(line: str, kinds: Mapping[str, tuple[Sign, ...]]) -> str:
    """The first kind whose signs a line has; the last one if it has none."""
    small = line.lower()
    return next((kind for kind, signs in kinds.items() if any(sign(line, small) for sign in signs)), list(kinds)[-1])


def every(kinds: Mapping[str, tuple[Sign, ...]]) -> Iterator[Sign]:
    """The signs of all kinds."""
    return (sign for signs in kinds.values() for sign in signs)
