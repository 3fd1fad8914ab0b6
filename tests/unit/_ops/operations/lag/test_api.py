"""What is refused before anything is asked of a broker."""

from __future__ import annotations

import pytest

import pyspark_kafka
from kit.texts import said
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._ops.operations.lag.api import lag, only_topics
from pyspark_kafka._ops.operations.lag.positions import LagPositions
from pyspark_kafka.errors import OptionError

SERVERS = {"bootstrap.servers": "localhost:1"}
A, B = TopicPartition("a", 0), TopicPartition("b", 0)


@pytest.mark.parametrize(("named", "word"), [({}, "None"), ({"checkpoint": "/c", "group": "g"}, "Both")])
def test_lag_needs_a_checkpoint_or_a_group(named: dict[str, str], word: str) -> None:
    with pytest.raises(OptionError, match=f"{word} was named") as caught:
        lag(SERVERS, **named)  # type: ignore[arg-type]
    assert caught.value.condition == "POSITIONS_NOT_NAMED"


def test_lag_is_a_name_of_the_package() -> None:
    assert pyspark_kafka.lag is lag


def test_topics_narrow_the_positions() -> None:
    found = only_topics(LagPositions("consumer group 'g'", {A: 1, B: 2}), ["b"])
    assert found.partitions == {B: 2}


def test_topics_without_positions_are_refused_with_those_that_have_some() -> None:
    with pytest.raises(OptionError) as caught:
        only_topics(LagPositions("consumer group 'g'", {A: 1}), ["x"])
    assert said(caught.value) == (
        "[NO_POSITIONS] There are no positions of consumer group 'g' in x: it does not exist, or has read nothing yet. "
        "Nothing was measured. Hint: Name topics that it reads: a."
    )


def test_group_without_positions_is_refused() -> None:
    with pytest.raises(OptionError, match="no positions of consumer group 'g': it does not exist") as caught:
        only_topics(LagPositions("consumer group 'g'", {}), None)
    assert caught.value.hint == "Check its name, and whether this user may describe the topics that it reads."
