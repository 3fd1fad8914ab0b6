"""What a batch read plans, over a cluster of offsets in memory."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest

from pyspark_kafka.errors import DataLossError, OptionError
from pyspark_kafka.model import TopicPartition
from pyspark_kafka.offsets import Latest, SpecificOffsets
from pyspark_kafka.options import BatchReadOptions, ConnectionOptions, Subscription
from pyspark_kafka.source.batch import KafkaBatch
from pyspark_kafka.source.columns import SOURCE_SCHEMA
from pyspark_kafka.source.partition_reader import KafkaInputPartition

if TYPE_CHECKING:
    from unit.source.conftest import ScriptedOffsets

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def planned(**options: Any) -> list[str]:
    connection = ConnectionOptions((("not-asked", 9092),))
    batch = KafkaBatch(BatchReadOptions(connection, Subscription("subscribe", ("t",)), **options), SOURCE_SCHEMA)
    found = []
    for partition in batch.planInputPartitions():
        assert isinstance(partition, KafkaInputPartition)
        found.append(str(partition.offset_range))
    return found


def test_everything_there_is_by_default_without_partitions_that_are_empty(offsets: ScriptedOffsets) -> None:
    offsets.logs = {A: (3, 10), B: (5, 5)}
    assert planned() == ["t-0 [3, 10)"]


def test_ends_are_looked_up_before_starts(offsets: ScriptedOffsets) -> None:
    offsets.logs = {A: (3, 10)}
    planned()
    assert offsets.asked == ["partitions", "latest", "earliest"]


def test_offsets_by_partition_are_taken_as_they_are(offsets: ScriptedOffsets) -> None:
    offsets.logs = {A: (0, 10), B: (0, 20)}
    starting, ending = SpecificOffsets({A: 4, B: 20}), SpecificOffsets({A: 6, B: Latest()})
    assert planned(starting=starting, ending=ending) == ["t-0 [4, 6)"]


def test_a_start_behind_its_end_names_every_such_range(offsets: ScriptedOffsets) -> None:
    offsets.logs = {A: (0, 10), B: (0, 20)}
    with pytest.raises(OptionError) as caught:
        planned(starting=SpecificOffsets({A: 7, B: 30}), ending=SpecificOffsets({A: 6, B: 20}))
    assert str(caught.value) == (
        "[RESOLVED_START_OFFSET_GREATER_THAN_END_OFFSET] The start lies behind the end of t-0 [7, 6), t-1 [30, 20). "
        "Nothing was read. Hint: check the starting and ending options; was the topic deleted and made again?"
    )


def test_an_end_behind_the_log_is_data_loss_before_any_task_waits_for_it(offsets: ScriptedOffsets) -> None:
    offsets.logs = {A: (0, 10)}
    with pytest.raises(DataLossError) as caught:
        planned(ending=SpecificOffsets({A: 25}))
    assert str(caught.value) == (
        "[KAFKA_DATA_LOSS.COULD_NOT_READ_OFFSET_RANGE] Offsets [10, 25) of t-0 [0, 25) cannot be read: the log of t-0 "
        "ends at 10. Nothing was read. Hint: check 'endingOffsets', or set failOnDataLoss=false to read what is there."
    )


@pytest.mark.parametrize(("start", "expected"), [(4, ["t-0 [4, 10)"]), (10, list[str]()), (15, list[str]())])
def test_what_is_there_is_read_where_loss_is_tolerated(
    offsets: ScriptedOffsets, caplog: pytest.LogCaptureFixture, start: int, expected: list[str]
) -> None:
    offsets.logs = {A: (0, 10)}
    with caplog.at_level(logging.WARNING):
        found = planned(starting=SpecificOffsets({A: start}), ending=SpecificOffsets({A: 25}), fail_on_data_loss=False)
    assert found == expected
    (warning,) = caplog.records
    assert f"Offsets [{max(start, 10)}, 25) of t-0 [{start}, 25) cannot be read" in warning.getMessage()


@pytest.mark.parametrize("option", ["starting", "ending"])
def test_offsets_of_other_partitions_name_the_option(offsets: ScriptedOffsets, option: str) -> None:
    offsets.logs = {A: (0, 10)}
    with pytest.raises(OptionError, match=rf"option '{option}Offsets'.*names t-1"):
        planned(**{option: SpecificOffsets({A: 1, B: 1})})


def test_a_subscription_without_partitions_reads_nothing(offsets: ScriptedOffsets) -> None:
    assert planned() == []
    assert offsets.asked[0] == "partitions"
