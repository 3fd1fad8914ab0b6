from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafka._client.client.wire.token_requests import (
    CreateTokenRequest,
    DescribeTokensRequest,
    ExpireTokenRequest,
    RenewTokenRequest,
    TokenChanged,
    TokenCreated,
    TokenEntry,
    TokensDescribed,
)

ALICE, BOB = ("User", "alice"), ("User", "bob")
# What a broker's response may make the decoder raise; `Connection` turns any of it into an error of its own.
REFUSED = (ValueError, struct.error)


def frame(key: int, body: bytes) -> bytes:
    header = struct.pack(">hhih", key, 1, 7, 4) + b"test"
    return struct.pack(">i", len(header + body)) + header + body


def text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


@pytest.mark.parametrize(
    ("request_", "key", "body"),
    [
        (
            CreateTokenRequest([BOB], 60_000),
            38,
            struct.pack(">i", 1) + text("User") + text("bob") + struct.pack(">q", 60_000),
        ),
        (RenewTokenRequest(b"key", -1), 39, struct.pack(">i", 3) + b"key" + struct.pack(">q", -1)),
        (ExpireTokenRequest(b"key", 5), 40, struct.pack(">i", 3) + b"key" + struct.pack(">q", 5)),
        (DescribeTokensRequest(None), 41, struct.pack(">i", -1)),
        (DescribeTokensRequest([ALICE]), 41, struct.pack(">i", 1) + text("User") + text("alice")),
    ],
)
def test_request_is_encoded_as_version_1_has_it(request_: CreateTokenRequest, key: int, body: bytes) -> None:
    assert b"".join(request_.build(1, 7, "test")) == frame(key, body)
    assert key == request_.API_KEY
    assert request_.has_response
    assert request_.first_flexible_version > 1


def created() -> bytes:
    owner = text("User") + text("alice")
    return (
        struct.pack(">h", 0) + owner + struct.pack(">qqq", 1, 2, 3) + text("id") + struct.pack(">i", 3) + b"key"
        + struct.pack(">i", 0)
    )  # fmt: skip


def described() -> bytes:
    token = text("User") + text("alice") + struct.pack(">qqq", 1, 2, 3) + text("id") + struct.pack(">i", 3) + b"key"
    renewers = struct.pack(">i", 1) + text("User") + text("bob")
    return struct.pack(">hi", 0, 1) + token + renewers + struct.pack(">i", 0)


def test_responses_are_decoded_as_version_1_has_them() -> None:
    assert TokenCreated.decode(memoryview(created())) == TokenCreated(0, TokenEntry(ALICE, 1, 2, 3, "id", b"key"))
    assert TokenChanged.decode(memoryview(struct.pack(">hqi", 66, 9, 0))) == TokenChanged(66, 9)
    token = TokenEntry(ALICE, 1, 2, 3, "id", b"key", (BOB,))
    assert TokensDescribed.decode(memoryview(described())) == TokensDescribed(0, (token,))


def test_key_of_a_token_is_shown_by_no_repr() -> None:
    assert "key" not in repr(TokenCreated.decode(memoryview(created())))
    assert "key" not in repr(TokensDescribed.decode(memoryview(described())))


@pytest.mark.parametrize("cut", [*range(10), 20, 40])
def test_response_that_is_cut_is_refused(cut: int) -> None:
    # Behind it stands the throttle time, which is not read.
    for decode, whole in ((TokenCreated.decode, created()[:-4]), (TokensDescribed.decode, described()[:-4])):
        with pytest.raises(REFUSED):
            decode(memoryview(whole[: min(cut, len(whole) - 1)]))


@given(st.binary(max_size=200))
def test_response_of_any_bytes_is_decoded_or_refused(data: bytes) -> None:
    for response in (TokenCreated, TokenChanged, TokensDescribed):
        try:
            response.decode(memoryview(data))
        except REFUSED:
            continue


def test_number_of_tokens_is_bounded_by_the_bytes_that_follow() -> None:
    with pytest.raises(ValueError, match="an array of 2147483647 entries in 0 bytes"):
        TokensDescribed.decode(memoryview(struct.pack(">hi", 0, 0x7FFFFFFF)))
