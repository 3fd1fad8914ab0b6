"""Tokens out of files, functions and claims; what of them is refused."""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path
from types import ModuleType
from typing import Any

import jwt
import pytest

from kit.texts import said
from pyspark_kafka._client.client.login.tokens.claims import parse_claims
from pyspark_kafka._client.client.login.tokens.sources import fetch_token
from pyspark_kafka._client.client.login.tokens.token import Token
from pyspark_kafka._client.client.waiting.deadline import Deadline
from pyspark_kafka._client.options import OAuthLogin, TokenFile, TokenFunction, UnsignedToken
from pyspark_kafka.errors import AccessError, ConnectorError, DeadlineError, OptionError

NOW = 1_800_000_000.0
PLANTED = "Pl4nted"
KEY = "k" * 32


def signed(**claims: Any) -> str:
    return jwt.encode({"sub": "ann", "exp": NOW + 600, **claims}, KEY)


def fetched(source: Any, timeout_ms: float = 30_000) -> Token:
    return fetch_token(OAuthLogin(source), Deadline(timeout_ms), lambda: NOW)


def refused(source: Any, timeout_ms: float = 30_000) -> ConnectorError:
    with pytest.raises(ConnectorError) as caught:
        fetched(source, timeout_ms)
    assert PLANTED not in str(caught.value)
    return caught.value


def test_a_file_has_the_token_of_its_latest_content(tmp_path: Path) -> None:
    file = tmp_path / "t.jwt"
    for user in ("ann", "bob"):
        file.write_text(f"\n{signed(sub=user)}\r\n")
        token = fetched(TokenFile(str(file)))
        assert token.claims is not None
        assert token.claims.subject == user
        assert token.expires_at == NOW + 600


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is empty"),
        (PLANTED.encode() + b" x", "has characters that no token has"),
        (b"\xff\xfe.e30.x", "has characters that no token has"),
        (PLANTED.encode(), "is not a JSON Web Token"),
        (b"x" * 100_000, "more than 65536"),
    ],
)
def test_a_file_without_a_token_is_said(tmp_path: Path, content: bytes, reason: str) -> None:
    file = tmp_path / "t.jwt"
    file.write_bytes(content)
    error = refused(TokenFile(str(file)))
    assert isinstance(error, AccessError)
    assert error.condition == "TOKEN_INVALID"
    assert reason in str(error)


def test_a_file_that_cannot_be_read_is_an_option_error(tmp_path: Path) -> None:
    error = refused(TokenFile(str(tmp_path / "none")))
    assert isinstance(error, OptionError)
    assert "cannot be read: No such file or directory. No connection was made." in str(error)
    assert refused(TokenFile(str(tmp_path))).condition == "TOKEN_UNAVAILABLE"


def test_a_pipe_without_a_writer_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "not a regular file" in str(refused(TokenFile(str(tmp_path / "pipe"))))


def test_an_expired_token_says_both_times(tmp_path: Path) -> None:
    file = tmp_path / "t.jwt"
    file.write_text(signed(exp=NOW - 1, iat=NOW - 601))
    assert said(refused(TokenFile(str(file)))) == (
        f"[TOKEN_INVALID] The token of the file '{file}' expired at 2027-01-15 07:59:59 UTC, was issued at 2027-01-15 "
        "07:49:59 UTC; the clock of this machine says 2027-01-15 08:00:00 UTC. It was not sent to a broker. Hint: Get "
        "a new token. Compare the clock of this machine with the clock of the OAuth server (NTP)."
    )


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = ModuleType("own_tokens")
    monkeypatch.setitem(sys.modules, "own_tokens", module)
    return module


SOURCE = TokenFunction("own_tokens:get")


@pytest.mark.parametrize(
    ("returned", "expires_at"),
    [
        (signed(), NOW + 600),
        ((signed(), 5_000), NOW + 5),
        ("opaque", None),
        (("opaque", 60_000), NOW + 60),
        # Of signers that return the end instead: ms since 1970.
        (("opaque", (NOW + 900) * 1000), NOW + 900),
        (["opaque", None], None),
    ],
)
def test_a_function_returns_a_token_and_maybe_its_lifetime(
    module: ModuleType, returned: Any, expires_at: float | None
) -> None:
    module.get = lambda: returned  # type: ignore[attr-defined]
    assert fetched(SOURCE).expires_at == expires_at


@pytest.mark.parametrize(
    ("returned", "reason"),
    [
        (None, "is None"),
        (b"opaque", "is a bytes"),
        (f"{PLANTED} x", "has characters that no token has"),
        ((PLANTED, -5), "has no lifetime in ms"),
        ((PLANTED, "5"), "has no lifetime in ms"),
        ((PLANTED, True), "has no lifetime in ms"),
        ((PLANTED, float("nan")), "has no lifetime in ms"),
        ((PLANTED, float("inf")), "has no lifetime in ms"),
        ((PLANTED, 1), None),
        (signed(exp=NOW - 5), "expired at"),
    ],
)
def test_result_of_a_function_is_checked(module: ModuleType, returned: Any, reason: str | None) -> None:
    module.get = lambda: returned  # type: ignore[attr-defined]
    if reason is None:
        assert fetched(SOURCE).expires_at == NOW + 0.001
    else:
        error = refused(SOURCE)
        assert error.condition == "TOKEN_INVALID"
        assert f"The token of the function 'own_tokens:get' {reason}" in str(error)


def test_a_function_that_fails_shows_the_type_alone(module: ModuleType) -> None:
    def get() -> str:
        raise RuntimeError(PLANTED)

    module.get = get  # type: ignore[attr-defined]
    error = refused(SOURCE)
    assert "cannot be had: it raised RuntimeError. No connection was made." in str(error)


@pytest.mark.parametrize("name", ["no_such_module:get", "own_tokens:nothing", "own_tokens:get.deeper"])
def test_a_function_that_is_not_there_is_said(module: ModuleType, name: str) -> None:
    module.get = None  # type: ignore[attr-defined]
    assert "there is no " in str(refused(TokenFunction(name)))


def test_a_function_that_never_returns_ends_at_the_deadline(module: ModuleType) -> None:
    release = threading.Event()
    module.get = lambda: release.wait(60)  # type: ignore[attr-defined]
    try:
        error = refused(SOURCE, timeout_ms=50)
    finally:
        release.set()
    assert isinstance(error, DeadlineError)
    assert "own_tokens:get" in str(error)


def test_an_unsigned_token_has_the_claims_that_were_set() -> None:
    source = UnsignedToken((("sub", "ann"), ("scope", ("a", "b")), ("n", 5.0)), lifetime_s=60)
    token = fetched(source)
    assert token.expires_at == NOW + 60
    claims = parse_claims(token.value.reveal().rstrip(".") + ".x")
    assert (claims.subject, claims.scopes, claims.expires_at) == ("ann", ("a", "b"), NOW + 60)
    assert json.loads(jwt.utils.base64url_decode(token.value.reveal().split(".")[0])) == {"alg": "none"}
    assert token.value.reveal().endswith(".")


def test_file_and_function_are_used_only_if_the_process_allows_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "t.jwt"
    file.write_text(signed())
    monkeypatch.setenv("PYSPARK_KAFKA_REFERENCES", f"file:{tmp_path}/other/")
    for source in (TokenFile(str(file)), TokenFunction("os:getcwd")):
        assert refused(source).condition == "REFERENCE_NOT_ALLOWED"
    monkeypatch.setenv("PYSPARK_KAFKA_REFERENCES", f"file:{tmp_path}/,call:os:*")
    assert fetched(TokenFile(str(file))).claims is not None
    assert refused(TokenFunction("os:getcwdb")).condition == "TOKEN_INVALID"
