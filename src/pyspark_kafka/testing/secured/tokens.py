"""Tokens of an embedded broker for OAUTHBEARER: signed JSON Web Tokens, and the keys that prove them.

Runs on: driver. Needs the packages `PyJWT` and `cryptography`.
"""

from __future__ import annotations

import json
import secrets
import time
from typing import Any

from pyspark_kafka.testing.secured.certificates import import_extra

_ALGORITHM = "RS256"
_KEY_BITS = 2048


class TokenIssuer:
    """Signs tokens with a key of its own.

    Attributes:
        issuer: the claim `iss` of its tokens.
        audience: the claim `aud`.
    """

    def __init__(self, issuer: str = "pyspark-kafka", audience: str = "kafka") -> None:
        """Create a key; about 0.1 s.

        Raises:
            MissingDependencyError: `PyJWT` or `cryptography` is not installed.
        """
        self._jwt = import_extra("jwt", "A broker with tokens")
        rsa = import_extra("cryptography.hazmat.primitives.asymmetric.rsa", "A broker with tokens")
        self.issuer = issuer
        self.audience = audience
        self._key_id = secrets.token_hex(8)
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=_KEY_BITS)

    @property
    def jwks(self) -> str:
        """The public key as a JSON Web Key Set (RFC 7517)."""
        algorithm = self._jwt.get_algorithm_by_name(_ALGORITHM)
        key = algorithm.to_jwk(self._key.public_key(), as_dict=True)
        return json.dumps({"keys": [{**key, "kid": self._key_id, "use": "sig", "alg": _ALGORITHM}]})

    def token(self, user: str, *, lifetime_s: float = 3600.0, age_s: float = 0.0, **claims: Any) -> str:
        """Return a signed token (RFC 7519).

        Args:
            user: the claim `sub`: who the bearer is.
            lifetime_s: seconds from now until it expires; negative: it has expired.
            age_s: seconds since it was issued; negative: it will be issued, as by a clock that is ahead.
            claims: other claims, which take precedence.
        """
        now = time.time()
        content = {
            "sub": user,
            "iss": self.issuer,
            "aud": self.audience,
            "iat": int(now - age_s),
            "exp": int(now + lifetime_s),
            "jti": secrets.token_hex(8),
            "scope": "kafka",
            **claims,
        }
        token: str = self._jwt.encode(content, self._key, algorithm=_ALGORITHM, headers={"kid": self._key_id})
        return token
