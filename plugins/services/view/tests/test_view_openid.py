"""People sign in to a server through a real OpenID provider (Canaille), in a real browser."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from click.testing import CliRunner
from mleredux._core.cli.root import root
from mleredux_server.accounts.accounts import disable_user, find_user
from mleredux_server.accounts.limits import RateLimit
from mleredux_server.database.tables import Identity, Token
from mleredux_server.web.oidc import allowed
from mleredux_support.ports import free_port
from mleredux_support.server_local import LocalServer
from mleredux_testing.pytest_plugin import skip_or_fail
from sqlalchemy import select

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

SignIn = Callable[[str], "Page"]


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    """A server that lets ada, eve and bob of a provider sign in, and that has a user ada already."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mleredux-openid-provider"
    if not folder.is_dir():
        skip_or_fail("openid", f"there is no OpenID provider in {folder} (`.ci/openid-provider` makes it)")
    port, work = free_port(), tmp_path_factory.mktemp("openid")
    issuer = f"http://127.0.0.1:{port}"
    how = {
        "oidc_client": "mleredux",
        "oidc_secret": "secret of the client",
        "oidc_allow": ("sub=ada", "sub=eve", "sub=bob"),
    }
    with LocalServer(work / "runs", oidc_issuer=issuer, **how).running() as local:
        local.app.state.limits.of_failures = RateLimit(10**6)
        local.user("ada")
        program = [folder / "bin" / "python", Path(__file__).with_name("openid_provider.py"), str(port)]
        with (work / "log").open("wb") as log:
            provider = subprocess.Popen(
                [*program, f"{local.url}/ui/oidc/callback"], stdout=log, stderr=log, cwd=work, start_new_session=True
            )
        try:
            until = time.monotonic() + 120
            while True:
                try:
                    httpx.get(f"{issuer}/.well-known/openid-configuration").raise_for_status()
                    break
                except httpx.HTTPError:
                    assert provider.poll() is None and time.monotonic() < until, (work / "log").read_text()
                    time.sleep(0.2)
            yield local
        finally:
            provider.kill()
            provider.wait()


def at_provider(page: Page, name: str) -> None:
    """Fill in the provider's forms."""
    page.locator("input[name=login]").fill(name)
    page.locator("button[type=submit]").first.click()
    page.locator("input[name=password]").fill(f"{name}'s password")
    page.locator("button[type=submit]").first.click()


def runs_of(local: LocalServer) -> str:
    """The directory of its runs, by which commands find its database."""
    return str(local.service.settings.runs_dir)


@pytest.fixture
def sign_in(local: LocalServer, browser: Browser) -> Iterator[SignIn]:
    """Goes through the provider's forms, in a browser of its own each time; returns the page that comes of it."""
    contexts = []

    def through(name: str) -> Page:
        contexts.append(context := browser.new_context())
        page = context.new_page()
        page.set_default_timeout(120_000)  # a provider is a process more, on a machine that may be busy
        page.goto(f"{local.url}/ui/")
        page.get_by_role("link", name="Sign in with 127.0.0.1").click()
        at_provider(page, name)
        page.wait_for_url(f"{local.url}/ui/**")
        page.locator("main").wait_for()
        return page

    yield through
    for context in contexts:
        context.close()


@pytest.mark.chromium
def test_people_sign_in_through_their_provider(local: LocalServer, sign_in: SignIn) -> None:
    page = sign_in("ada")
    page.wait_for_url(f"{local.url}/ui/")
    page.get_by_role("button", name="Sign out").wait_for()
    cookies = {one["name"]: one for one in page.context.cookies(f"{local.url}/ui/")}
    assert cookies["mleredux-session"]["sameSite"] == "Strict" and cookies["mleredux-session"]["httpOnly"]
    sign_in("ada").get_by_role("button", name="Sign out").wait_for()
    sign_in("eve").get_by_role("button", name="Sign out").wait_for()
    with local.service.database.reading() as session:
        users = {one.subject: one.user_id for one in session.scalars(select(Identity))}
        names = {find_user(session, user).name for user in users.values()}
        tokens = session.scalars(select(Token).where(Token.user_id == users["ada"])).all()
    # Both call themselves ada at the provider: neither gets the account of the ada who was here before.
    assert set(users) == {"ada", "eve"} and names == {"ada-2", "ada-3"}
    assert len(tokens) == 2 and all(one.expires_at and "admin" not in one.scopes for one in tokens)
    page.get_by_role("button", name="Sign out").click()
    page.get_by_role("link", name="Sign in with 127.0.0.1").wait_for()
    with local.service.database.reading() as session:
        tokens = session.scalars(select(Token).where(Token.user_id == users["ada"])).all()
    assert sorted(one.revoked_at is not None for one in tokens) == [False, True]
    refused = sign_in("mallory")
    assert "may not sign in here" in refused.get_by_role("alert").inner_text()
    with local.service.database.writing() as session:
        disable_user(session, find_user(session, users["eve"]))
    assert "is disabled" in sign_in("eve").get_by_role("alert").inner_text()


@pytest.mark.chromium
def test_a_user_links_an_account_and_signs_in_with_it(local: LocalServer, sign_in: SignIn, browser: Browser) -> None:
    tokens = {
        "bea": local.user("bea", scopes=["read", "run", "grade", "tokens"]),
        "reader": local.user("reader", scopes=["read"]),
        "root": local.user("root", admin=True, scopes=["read", "run", "grade", "tokens"]),
    }
    page = browser.new_context().new_page()

    def link(name: str) -> None:
        page.context.clear_cookies()
        page.goto(f"{local.url}/ui/")
        page.get_by_label("Token").fill(tokens[name])
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("link", name="Server").click()
        page.get_by_role("link", name="Link an account at 127.0.0.1").click()

    for name in ("reader", "root"):  # who has a part of a user's rights gets no more by it
        link(name)
        assert "needs a token with the scopes" in page.get_by_role("status").first.inner_text()
    link("bea")
    at_provider(page, "bob")
    page.get_by_text("Linked to bob at").wait_for()
    page.get_by_role("button", name="Sign out").click()
    again = sign_in("bob")
    again.goto(f"{local.url}/ui/server")
    assert "Linked to bob at" in again.inner_text("main")
    assert again.locator(".where").get_attribute("title") == "bea"
    tokens["cleo"] = local.user("cleo", scopes=["read", "run", "grade", "tokens"])
    link("cleo")
    at_provider(page, "bob")
    assert "linked to another user" in page.get_by_role("alert").inner_text()
    page.context.close()
    with local.service.database.reading() as session:
        issuer = session.scalars(select(Identity.issuer).where(Identity.subject == "bob")).one()
    told = CliRunner().invoke(
        root, ["server", "user", "link", "cleo", "--issuer", issuer, "--subject", "bob", "--runs-dir", runs_of(local)]
    )
    assert told.exit_code == 0 and f"bob at {issuer} signs in as cleo." in told.output, told.output
    again = sign_in("bob")
    assert again.locator(".where").get_attribute("title") == "cleo"


@pytest.mark.chromium
def test_an_answer_that_was_not_asked_for_signs_nobody_in(local: LocalServer, sign_in: SignIn) -> None:
    back = f"{local.url}/ui/oidc/callback"
    begun = httpx.get(f"{local.url}/ui/oidc")
    asked = httpx.URL(begun.headers["location"]).params
    assert asked["code_challenge_method"] == "S256" and asked["nonce"] and asked["redirect_uri"] == back
    assert "samesite=lax" in begun.headers["set-cookie"].lower()
    cookies = dict(begun.cookies)
    for query, given in (
        ("", {}),
        ("?code=x&state=y", {}),
        (f"?code=x&state={asked['state']}", {}),  # in another browser
        (f"?code=x&state={asked['state']}", {"mleredux-oidc": "x"}),
        ("?code=x&state=y", cookies),  # another state
        (f"?code=x&state={asked['state']}", cookies),  # used up by the one before
    ):
        refused = httpx.get(back + query, cookies=given)
        assert refused.status_code == 401 and "mleredux-session" not in refused.headers.get("set-cookie", ""), query
    begun = httpx.get(f"{local.url}/ui/oidc")
    state = httpx.URL(begun.headers["location"]).params["state"]
    refused = httpx.get(f"{back}?code=forged&state={state}", cookies=dict(begun.cookies))
    assert refused.status_code == 401 and "failed" in refused.text and "forged" not in refused.text


@pytest.mark.parametrize(
    ("rule", "claims", "fits"),
    [
        ("*", {}, True),
        ("sub=ada", {"sub": "ada"}, True),
        ("sub=ada", {"sub": "ada2"}, False),
        ("sub=*", {}, False),
        ("groups=ml-*", {"groups": ["x", "ml-1"]}, True),
        ("groups=ml-*", {"groups": ["x-ml-1"]}, False),
        ("email=*@example.org", {"email": "ada@example.org"}, False),
        ("email=*@example.org", {"email": "ada@example.org", "email_verified": "true"}, False),
        ("email=*@example.org", {"email": "ada@example.org", "email_verified": True}, True),
        ("email=*@example.org", {"email": "ada@example.org.evil", "email_verified": True}, False),
        ("hd=example.org", {"hd": None}, False),
    ],
)
def test_rules_fit_values_of_claims(rule: str, claims: dict[str, Any], fits: bool) -> None:
    assert allowed(rule, {"iss": "i", "sub": "s", **claims} if rule != "sub=*" else claims) is fits


def test_a_provider_without_client_secret_and_rule_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLEREDUX_OIDC_SECRET", raising=False)
    ended = CliRunner().invoke(
        root, ["serve", "--runs-dir", str(tmp_path), "--port", "0", "--oidc-issuer", "https://sign-on.example"]
    )
    assert ended.exit_code == 1 and "requires a client, its secret and a list of allowed users" in str(ended.exception)
