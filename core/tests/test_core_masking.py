"""Secrets are hidden byte by byte, wherever a file is cut."""

from __future__ import annotations

import json
import os
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from mleredux._core.masks import Mask, forms
from mleredux._core.plugins import Catalogue
from mleredux._core.sandboxes.variables import callers_proxies, secret_values
from mleredux._core.stages import produce

KEY = "sk-0123456789abcdef"
SECRETS = st.lists(st.text("ab*", min_size=6, max_size=9), max_size=3)
TEXTS = st.text("ab*", max_size=60).map(str.encode)


def test_forms_are_those_of_texts_and_of_json_longest_first() -> None:
    quoted = 'pass"wörd'
    assert forms([quoted, KEY, KEY, "short", ""]) == [
        KEY.encode(),
        json.dumps(quoted)[1:-1].encode(),
        'pass\\"wörd'.encode(),
        quoted.encode(),
    ]
    assert forms(["no\udcffutf8"])[-1] == b"no\xffutf8", "as the environment holds bytes that are no UTF-8"
    assert not Mask(["short"]) and Mask([KEY])


def test_as_many_stars_as_bytes_in_texts_and_in_bytes() -> None:
    mask = Mask([KEY, "größer"])
    for before, after in ((b"key: ", b"\n"), (b"\0\xff", b"\0"), (b"", b"")):
        assert mask.hide(before + KEY.encode() + after) == before + b"*" * 19 + after
    assert mask.hide("größer".encode() + b' "gr\\u00f6\\u00dfer"') == b'******** "****************"'
    assert mask.hide(b"nothing here") == b"nothing here" and not mask.finds(KEY[:-1].encode())


@pytest.mark.attack
def test_secrets_that_overlap_are_hidden_whole() -> None:
    assert Mask(["abcdef", "defabc"]).hide(b"-abcdefabc-") == b"-*********-"
    assert Mask(["abcabc"]).hide(b"-abcabcabc-") == b"-*********-"


@pytest.mark.attack
@pytest.mark.parametrize(
    ("address", "secrets"),
    [
        ("http://ada:pass-word@proxy:3128", {"pass-word"}),
        ("http://ada:p%40ss-word@proxy", {"p%40ss-word", "p@ss-word"}),
        ("ada:pass-word@proxy:3128", {"pass-word"}),
        ("socks5h://a-token@proxy:1080", {"a-token"}),
        ("http://ada:pass/wo#rd?@proxy", {"pass/wo#rd?"}),
        ("http://ada:pa[ss]@wo:rd@proxy", {"pa[ss]@wo:rd"}),
        ("http://[proxy", {""}),
        ("http://proxy:3128", {""}),
    ],
)
@pytest.mark.parametrize("name", ["https_proxy", "HTTP_PROXY", "all_proxy"])
def test_passwords_of_the_callers_proxies_are_secrets_of_an_open_network(
    address: str, secrets: set[str], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for known in [known for known in os.environ if known.lower().endswith("_proxy")]:
        monkeypatch.delenv(known)
    monkeypatch.setenv(name, address)
    run: Any = SimpleNamespace(agent="repo:x", network="open", grants=SimpleNamespace(variables=()))
    assert secret_values(run, Catalogue(plugins=[])) == secrets
    assert callers_proxies() == {name.lower(): address, name.upper(): address}
    run.network = "none"
    assert secret_values(run, Catalogue(plugins=[])) == set()


@given(SECRETS, TEXTS, st.integers(0, 60), st.integers(0, 60))
@example(["aabaab"], b"xaabaabaabx", 4, 1)
def test_a_part_is_what_the_whole_says_there(secrets: list[str], text: bytes, offset: int, most: int) -> None:
    mask = Mask(secrets)
    whole = mask.hide(text)
    assert len(whole) == len(text)
    assert mask.read(lambda place, size: text[place : place + size], offset, most) == whole[offset : offset + most]


@given(SECRETS, TEXTS, TEXTS)
@example(["aaaaab"], b"aaaaaaa", b"b")
def test_what_is_given_out_before_a_beginning_is_never_changed_by_what_comes(
    secrets: list[str], text: bytes, more: bytes
) -> None:
    mask = Mask(secrets)
    begun = mask.begun(text)
    tail = text[len(text) - begun :]
    beginnings = [form[:size] for form in forms(secrets) for size in range(1, len(form)) if text.endswith(form[:size])]
    assert tail == max(beginnings, key=len, default=b"")
    safe = len(text) - begun
    assert mask.hide(text)[:safe] == mask.hide(text + more)[:safe]


@pytest.mark.attack
def test_files_are_masked_across_blocks_and_keep_their_length(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(produce, "_BLOCK", 32)
    content = (b"." * 25 + KEY.encode()) * 7 + b"end"
    output = tmp_path / "output"
    output.mkdir()
    (output / "whole").write_bytes(content)
    (output / "half").write_bytes(content[: 25 + 18])
    os.link(output / "whole", tmp_path / "outside")
    run: Any = SimpleNamespace(path=tmp_path)
    assert produce.mask_secrets(run, [KEY, "short"]) == 1
    assert (output / "whole").read_bytes() == (b"." * 25 + b"*" * 19) * 7 + b"end"
    assert (output / "half").read_bytes() == content[: 25 + 18]
    assert (tmp_path / "outside").read_bytes() == content, "another name of the file may lie outside the run"
    assert sorted(path.name for path in output.iterdir()) == ["half", "whole"]
