"""Who gets in: the browser that opened the one-time address first, asking this host, from this site."""

from __future__ import annotations

import re
from typing import Any

import httpx
import pytest
from mleredux_view import downloads


def ask(site: Any, path: str = "/", **options: Any) -> httpx.Response:
    method = options.pop("method", "GET")
    return httpx.request(method, site.url + path, **{"timeout": 60, **options})


def signed_in(site: Any) -> dict[str, str]:
    answer = httpx.get(site.once())
    assert answer.status_code == 303 and "secret" not in answer.headers["location"]
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=strict" in cookie
    return {"cookie": cookie.partition(";")[0]}


@pytest.mark.attack
def test_the_address_works_once(site: Any) -> None:
    once = site.once()
    assert httpx.get(once).status_code == 303
    assert httpx.get(once).status_code == 401
    assert ask(site).status_code == 401
    assert ask(site, headers={"cookie": f"mleredux-{site.port}=guess"}).status_code == 401
    assert ask(site, headers=signed_in(site)).status_code == 200


@pytest.mark.parametrize("size", [1, 300_000])
def test_a_file_that_shrinks_while_it_is_sent_is_incomplete_and_no_error(
    site: Any, size: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    folder = site.runs / site.ids["done"] / "output"
    (folder / "shrinks.bin").write_bytes(bytes(size))
    address = f"/runs/{site.ids['done']}/raw?path=output/shrinks.bin"
    known = signed_in(site)
    assert len(ask(site, address, headers=known).content) == size
    monkeypatch.setattr(downloads, "data_end", lambda _file: size + 1)
    with pytest.raises(httpx.RemoteProtocolError):
        ask(site, address, headers=known)
    assert not [record for record in caplog.records if record.exc_info]


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1", "localhost.evil.example", ""])
@pytest.mark.attack
def test_other_hosts_are_refused(site: Any, host: str) -> None:
    assert ask(site, headers={**signed_in(site), "host": host}).status_code == 421


@pytest.mark.parametrize(
    "headers",
    [{}, {"origin": "null"}, {"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}],
)
@pytest.mark.attack
def test_changes_are_asked_for_by_pages_of_this_site_only(site: Any, headers: dict[str, str]) -> None:
    known = signed_in(site)
    secret = re.findall(r'name="csrf" value="([^"]+)"', ask(site, "/", headers=known).text)[0]
    own = {"origin": site.url} if "sec-fetch-site" in headers else {}
    form = {"run": "x", "csrf": secret}
    refused = ask(site, "/actions/stop", method="POST", data=form, headers={**known, **own, **headers})
    assert refused.status_code == 403
    own = {"origin": site.url, "sec-fetch-site": "same-origin"}
    form = {"run": site.ids["done"]}
    for forged in ({}, {"csrf": ""}, {"csrf": "x" * 43}, {"csrf": "\u00e4"}):
        given = ask(site, "/actions/stop", method="POST", data={**form, **forged}, headers={**known, **own})
        assert given.status_code == 403
    form["csrf"] = secret
    allowed = ask(site, "/actions/stop", method="POST", data=form, headers={**known, **own})
    assert allowed.status_code == 303
    assert "is already done" in ask(site, "/", headers=known).text
    assert ask(site, "/actions/stop", headers=known).status_code == 405


def test_no_address_has_the_secret_of_forms(site: Any) -> None:
    """A form that is sent as an address, like the one that compares runs, sends none."""
    page = ask(site, "/", headers=signed_in(site)).text
    sent = re.findall(r"<(?:form|button)[^>]*method=\"get\"[^>]*>", page)
    assert any("/compare" in tag for tag in sent) and not any("csrf" in tag for tag in sent)
    [act] = re.findall(r'<form id="act".*?</form>', page, re.DOTALL)
    assert "csrf" not in act
    assert all('name="csrf"' in tag for tag in re.findall(r"<button[^>]*/actions/[^>]*>", page))


@pytest.mark.attack
def test_every_answer_has_the_policy(site: Any) -> None:
    known = signed_in(site)
    for path in ("/", "/failures", "/static/view.js", "/static/report.css", "/nothing", f"/runs/{site.ids['done']}"):
        policy = ask(site, path, headers=known).headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';") and "unsafe" not in policy


@pytest.mark.parametrize("name", ["output/page.html", "output/picture.svg", "output/code/train.py"])
@pytest.mark.attack
def test_files_of_agents_are_downloads_in_a_sandbox(site: Any, name: str) -> None:
    answer = ask(site, f"/runs/{site.ids['hostile']}/raw", params={"path": name}, headers=signed_in(site))
    assert answer.status_code == 200
    assert answer.headers["content-disposition"].startswith("attachment")
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-security-policy"] == "sandbox; default-src 'none'"


@pytest.mark.parametrize("path", ["../../secret", "/etc/passwd", "output/../../x", ".lock", "output/none", "logs"])
@pytest.mark.attack
def test_no_path_leaves_the_run(site: Any, path: str) -> None:
    for page in ("raw", "files", "log"):
        answer = ask(site, f"/runs/{site.ids['done']}/{page}", params={"path": path}, headers=signed_in(site))
        assert answer.status_code == 404 or page == "log"


@pytest.mark.parametrize("run", ["..", ".", "nothing", "%2e%2e", "a%2Fb", "%00"])
@pytest.mark.attack
def test_no_run_is_outside_the_directory(site: Any, run: str) -> None:
    assert ask(site, f"/runs/{run}/files", headers=signed_in(site)).status_code in (400, 404)


def test_a_selection_too_long_for_an_address_is_refused_in_a_sentence(site: Any) -> None:
    known, few, many = signed_in(site), "&".join(["run=x"] * 1_000), "&".join(["a=b"] * 2_001)
    assert ask(site, f"/?{few}", headers=known).status_code == 200
    refused = ask(site, f"/?{many}", headers=known)
    assert refused.status_code == 414 and "select fewer runs" in refused.text
