# SPDX-License-Identifier: MIT
"""An issuer of bearer tokens with keys of its own, and a client that shows one over TLS."""

import http.client
import json
import ssl
import time

import pytest
from rest_client import ACCOUNT, Response

jwt = pytest.importorskip("jwt", reason="needs python3-jwt")
from cryptography.hazmat.primitives.asymmetric import ec, rsa  # noqa: E402

READER, CONTRIBUTOR = "Storage {} Data Reader", "Storage {} Data Contributor"


def claims(**changes):
    """Those of a good token; None takes one away."""
    now = int(time.time())
    all_of = {"iat": now, "nbf": now, "exp": now + 600, "iss": "https://sts.windows.net/someone/",
              "aud": "https://storage.azure.com", "oid": "0b0e5a52-7d8f-4ad1-9bf0-4ca9e6d6e55f",
              "tid": "72f988bf-86f1-41af-91ab-2d7cd011db47", **changes}
    return {k: v for k, v in all_of.items() if v is not None}


def unsigned(**changes):
    return jwt.encode(claims(**changes), None, algorithm="none")


class Issuer:
    """An RSA key r1 and a key of P-256 e1; replace_keys() makes new ones of these names."""

    def __init__(self):
        self.replace_keys()

    def replace_keys(self):
        self.rsa = rsa.generate_private_key(65537, 2048)
        self.curve = ec.generate_private_key(ec.SECP256R1())

    def write(self, path, **members):
        """The set of public keys."""
        keys = [{**json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(self.rsa.public_key())), "kid": "r1"},
                {**json.loads(jwt.algorithms.ECAlgorithm.to_jwk(self.curve.public_key())), "kid": "e1"}]
        for key in keys:
            key.pop("key_ops", None)
        path.write_text(json.dumps({"keys": keys, **members}))
        return path

    def token(self, *roles, curve=False, kid=None, **changes):
        if roles:
            changes["roles"] = list(roles)
        key, alg, name = (self.curve, "ES256", "e1") if curve else (self.rsa, "RS256", "r1")
        return jwt.encode(claims(**changes), key, algorithm=alg, headers={"kid": kid or name})


class Bearer:
    """ask(token, …) sends a request to a service of a server with TLS.  One connection, kept alive."""

    def __init__(self, port, pem, account=ACCOUNT):
        self.port, self.pem, self.account = port, pem, account
        self.context = ssl.create_default_context(cafile=pem)
        self.connection = None

    def ask(self, token, method, path, service="table", body=None, headers=None, version="2021-12-02"):
        host = f"{self.account}.{service}.localhost:{self.port}"
        have = {"host": host, "x-ms-version": version, "accept": "application/json",
                "content-type": "application/json" if service == "table" else "text/xml",
                "authorization": f"Bearer {token}", **(headers or {})}
        have = {k: v for k, v in have.items() if v is not None}
        if body is not None and not isinstance(body, (str, bytes)):
            body = json.dumps(body)
        if self.connection is None:
            self.connection = http.client.HTTPSConnection("localhost", self.port, context=self.context, timeout=60)
        self.connection.request(method, path, body if body is not None or method == "GET" else "", have)
        r = self.connection.getresponse()
        return Response(r.status, r.reason, r.headers, r.read())

    def close(self):
        if self.connection:
            self.connection.close()
