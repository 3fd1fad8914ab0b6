"""Claims of JSON Web Tokens: what is read, and what is refused without repeating it."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

import pytest

from pyspark_kafka._client.client.login.tokens.claims import MAX_TOKEN_LENGTH, check_bearer, parse_claims
from pyspark_kafka._client.client.login.tokens.token import Claims, as_time

GOOD = {"sub": "ann", "exp": 2_000_000_000}


def token(claims: Any, header: Any = None) -> str:
    def part(value: Any) -> str:
        text = value if isinstance(value, str) else json.dumps(value)
        return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")

    return f"{part({'alg': 'RS256'} if header is None else header)}.{part(claims)}.c2ln"


def test_claims_are_read() -> None:
    claims = {**GOOD, "iss": "i", "aud": ["a", "b"], "scope": "read write", "iat": 1.5, "nbf": 2}
    assert parse_claims(token(claims)) == Claims("ann", "i", ("a", "b"), ("read", "write"), 1.5, 2.0, 2_000_000_000.0)


def test_names_of_claims_may_be_others() -> None:
    found = parse_claims(token({"client": "svc", "exp": 5, "scp": ["r", "w"]}), scope_claim="scp", sub_claim="client")
    assert (found.subject, found.scopes) == ("svc", ("r", "w"))


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("", "is empty"),
        ("a b", "characters that no token has"),
        ("x" * (MAX_TOKEN_LENGTH + 1), "has 65537 characters, more than 65536"),
        ("opaque", "is not a JSON Web Token, which has 3 parts separated by dots; it has 1"),
        ("a.b.c.d", "it has 4"),
        ("e30.!.c", "characters that no token has"),
        ("e30.~~.c", "has a claims part that is not base64url"),
        ("e3.e30.c", "has a header part that is not a JSON object"),
        (token("[1]"), "has a claims part that is not a JSON object"),
        (token(GOOD, header="x"), "has a header part that is not a JSON object"),
        (token("[" * 20_000), "has a claims part that is not a JSON object"),
        (token('{"exp":' + "9" * 6000 + "}"), "has a claims part that is not a JSON object"),
        (token({"sub": "ann"}), "has no claim 'exp'"),
        (token({"sub": "ann", "exp": True}), "has a claim 'exp' that is not a time"),
        (token({"sub": "ann", "exp": "5"}), "has a claim 'exp' that is not a time"),
        (token({"sub": "ann", "exp": -5}), "has a claim 'exp' that is not a time"),
        (token('{"sub":"ann","exp":Infinity}'), "has a claim 'exp' that is not a time"),
        (token('{"sub":"ann","exp":NaN}'), "has a claim 'exp' that is not a time"),
        (token({**GOOD, "nbf": 1e300}), "has a claim 'nbf' that is not a time"),
        (token({"exp": 5}), "has no claim 'sub', the user"),
        (token({"exp": 5, "sub": " "}), "has no claim 'sub', the user"),
        (token({"exp": 5, "sub": 7}), "has no claim 'sub', the user"),
        (token({**GOOD, "scope": 5}), "has a claim 'scope' that is neither a text nor a list"),
        (token({**GOOD, "aud": ["a"] * 101}), "has a claim 'aud' that is neither a text nor a list"),
    ],
)
def test_a_token_that_is_none_is_refused_without_repeating_it(raw: str, reason: str) -> None:
    with pytest.raises(ValueError, match=re.escape(reason)) as caught:
        parse_claims(raw)
    assert len(str(caught.value)) < 200


def test_bearer_tokens_need_not_be_json() -> None:
    check_bearer("aHR0cHM6Ly9rYWZrYS4-._~+/==")


@pytest.mark.parametrize("seconds", [1e11, -1e20, 1e300])
def test_a_time_beyond_the_calendar_is_a_number(seconds: float) -> None:
    assert as_time(seconds)


def test_claims_are_described_in_one_printable_line() -> None:
    text = Claims("a\nb", None, (), (), None, None, 5.0).described(0.0)
    assert text == (
        "The token is for user 'a\\nb', of no issuer, for no audience, without scope, valid until 1970-01-01 00:00:05 "
        "UTC; the clock of this machine says 1970-01-01 00:00:00 UTC."
    )
