"""Messages as JSON, and bytes that are none."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafka.continuous.epochs.coordinator import LaneReport
from pyspark_kafka.continuous.epochs.messages import (
    Alive,
    BadMessageError,
    End,
    Failed,
    Hello,
    LaneEnded,
    Message,
    Moved,
    Reports,
    Started,
    Stop,
    decode,
    encode,
)

MESSAGES: list[Message] = [
    Hello(3),
    Started(1),
    Moved(1, 7),
    Reports((LaneReport(1, 7, '{"t":{"0":5}}', "{}", 10, 9), LaneReport(2, 7, "{}", "", state="s"))),
    LaneEnded(1),
    Failed(0, "ValueError: boom", "Traceback …", '["t",0,5]', "t-0 [0, 5)", '{"kind":"…"}'),
    Alive(),
    End(7, 1, 4_400),
    Stop(),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_message_is_the_same_after_a_way_through_json(message: Message) -> None:
    assert decode(encode(message)) == message


@pytest.mark.parametrize(
    "parsed",
    [
        None,
        [],
        {"is": "unknown"},
        {"is": ["end"]},
        {"is": "end"},
        {"is": "end", "epoch": 7, "last": 0},
        {"is": "end", "epoch": "7", "last": 0, "lanes_ms": 1},
        {"is": "end", "epoch": True, "last": 0, "lanes_ms": 1},
        {"is": "end", "epoch": -1, "last": 0, "lanes_ms": 1},
        {"is": "end", "epoch": 2**63, "last": 0, "lanes_ms": 1},
        {"is": "end", "epoch": 1.5, "last": 0, "lanes_ms": 1},
        {"is": "end", "epoch": 7, "last": 0, "lanes_ms": 1, "more": 1},
        {"is": "failed", "lane": 0, "summary": 1, "traceback": "", "offset": ""},
        {"is": "reports", "reports": []},
        {"is": "reports", "reports": {}},
        {"is": "reports", "reports": [7]},
        {"is": "reports", "reports": [[1, 7, "{}", "{}", 10, 9, "", "", 1, 0, 0]]},
        {"is": "reports", "reports": [[1, 7, "{}", "{}", 10, 9, "", "", True, 0, 0, 0]]},
        {"is": "reports", "reports": [[1, -7, "{}", "{}", 10, 9, "", "", 1, 0, 0, 0]]},
        {"is": "reports", "reports": [[1, 7, "{}", None, 10, 9, "", "", 1, 0, 0, 0]]},
    ],
)
def test_json_that_is_no_message_is_an_error(parsed: object) -> None:
    with pytest.raises(BadMessageError):
        decode(json.dumps(parsed).encode())


@given(st.binary(max_size=200) | st.sampled_from([encode(each) for each in MESSAGES]).map(lambda data: data[:-1]))
def test_any_bytes_are_a_message_or_an_error(data: bytes) -> None:
    try:
        decode(data)
    except BadMessageError:
        return


def test_deeply_nested_json_is_an_error() -> None:
    with pytest.raises(BadMessageError):
        decode(b"[" * 200_000)
