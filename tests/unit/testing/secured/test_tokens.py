"""Signed tokens, as whoever has the keys reads them."""

from __future__ import annotations

import json

import jwt
import pytest

from pyspark_kafka.testing.secured.tokens import TokenIssuer


def test_token_is_proven_by_the_keys_of_its_issuer_alone() -> None:
    issuer, other = TokenIssuer(), TokenIssuer()
    token = issuer.token("alice", scope="read")
    keys = jwt.PyJWKSet.from_json(issuer.jwks)
    key = keys[jwt.get_unverified_header(token)["kid"]]
    claims = jwt.decode(token, key.key, algorithms=["RS256"], audience="kafka", issuer="pyspark-kafka")
    assert (claims["sub"], claims["scope"]) == ("alice", "read")
    wrong = jwt.PyJWKSet.from_json(other.jwks).keys[0]
    with pytest.raises(jwt.InvalidSignatureError):
        jwt.decode(token, wrong.key, algorithms=["RS256"], audience="kafka")
    assert "d" not in json.loads(issuer.jwks)["keys"][0], "the private part stays here"


def test_token_with_a_negative_lifetime_has_expired() -> None:
    issuer = TokenIssuer()
    key = jwt.PyJWKSet.from_json(issuer.jwks).keys[0]
    with pytest.raises(jwt.ExpiredSignatureError):
        jwt.decode(issuer.token("alice", lifetime_s=-1), key.key, algorithms=["RS256"], audience="kafka")
