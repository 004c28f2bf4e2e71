"""Be an OpenID provider with the people ada, bob, eve and mallory: `python openid_provider.py PORT REDIRECT_URI`."""

import sys

from canaille import create_app
from canaille.app import models
from canaille.backends import Backend
from joserfc.jwk import RSAKey

port, redirect = int(sys.argv[1]), sys.argv[2]
key = RSAKey.generate_key(2048, {"kid": "1"}, private=True).as_dict(private=True)
app = create_app(
    {
        "SECRET_KEY": "of-tests-alone",
        "SERVER_NAME": f"127.0.0.1:{port}",
        "PREFERRED_URL_SCHEME": "http",
        "CANAILLE": {"NAME": "Sign-on"},
        "CANAILLE_OIDC": {"ACTIVE_JWKS": [key]},
    }
)
with app.app_context(), Backend.instance.session():
    for name in ("ada", "bob", "eve", "mallory"):
        email = [f"{name}@example.org"]
        person = {"user_name": name, "family_name": name.title(), "formatted_name": name.title(), "emails": email}
        Backend.instance.save(models.User(password=f"{name}'s password", display_name="ada", **person))
    Backend.instance.save(
        models.Client(
            client_id="mleredux",
            client_secret="secret of the client",
            client_name="mleredux",
            client_uri="http://127.0.0.1",  # trusted: people are not asked for consent
            redirect_uris=[redirect],
            grant_types=["authorization_code"],
            response_types=["code"],
            scope=["openid", "profile", "email"],
            token_endpoint_auth_method="client_secret_basic",
        )
    )
app.run(port=port, threaded=True)
