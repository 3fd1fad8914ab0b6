from __future__ import annotations

import pytest

from pyspark_kafka.testing.readiness import build_metadata_request, parse_metadata_response

# Metadata version 2 as its schema lays it out: request 7, broker 1 at a:9092 in no rack, cluster "xy", controller 1.
REPLY = (
    b"\x00\x00\x00\x07"
    b"\x00\x00\x00\x01"
    b"\x00\x00\x00\x01\x00\x01a\x00\x00\x23\x84\xff\xff"
    b"\x00\x02xy"
    b"\x00\x00\x00\x01\x00\x00\x00\x00"
)


def test_the_metadata_request_is_the_frame_that_kafka_defines() -> None:
    assert build_metadata_request(7) == (
        b"\x00\x00\x00\x21"  # 33 bytes follow
        b"\x00\x03\x00\x02\x00\x00\x00\x07"  # Metadata, version 2, correlation id 7
        b"\x00\x13pyspark-kafka-probe"
        b"\x00\x00\x00\x00"  # no topics
    )


def test_the_cluster_is_known_once_a_broker_is_let_in() -> None:
    assert parse_metadata_response(REPLY, 7) == "xy"
    assert parse_metadata_response(REPLY[:4] + bytes(4) + REPLY[21:], 7) is None


@pytest.mark.parametrize("cut", range(25))
def test_a_cut_reply_is_refused(cut: int) -> None:
    with pytest.raises(ValueError, match=r"unpack|beyond the frame"):
        parse_metadata_response(REPLY[:cut], 7)


def test_an_answer_to_another_request_is_refused() -> None:
    with pytest.raises(ValueError, match="it answers request 7, expected 8"):
        parse_metadata_response(REPLY, 8)
