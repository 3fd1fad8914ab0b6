from __future__ import annotations

import pytest

from pyspark_kafka.checkpoint.continuous_files import PreparedEpoch, owner_bytes, read_owner


@pytest.mark.parametrize("state", ["", '{"v":1}'])
def test_prepared_epoch_is_read_as_it_was_written(state: str) -> None:
    prepared = PreparedEpoch('{"t":{"0":1}}', ("a", "é"), state)
    assert PreparedEpoch.from_bytes(prepared.to_bytes()) == prepared


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{}",
        b'{"v":2,"offset":"{}","messages":[]}',
        b'{"v":1,"offset":7,"messages":[]}',
        b'{"v":1,"offset":"{}","messages":"ab"}',
        b'{"v":1,"offset":"{}","messages":[1]}',
        b"\xff",
        b"[" * 100_000,
    ],
)
def test_prepared_epoch_of_another_form_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match="it has no commit messages"):
        PreparedEpoch.from_bytes(content)


@pytest.mark.parametrize("content", [None, b"", b"{}", b"[]", b'{"v":1', b"\xff"])
def test_owner_that_is_not_named_is_none(content: bytes | None) -> None:
    assert read_owner(content) is None
    assert read_owner(owner_bytes("start")) == "start"
