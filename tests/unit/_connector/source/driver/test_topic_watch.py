"""A recreated topic is noticed by its id, whatever its offsets are."""

from __future__ import annotations

import logging
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kit.fixtures.offsets import ScriptedOffsets, ranges, stream_of
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._base.offsets import Earliest, KafkaSourceOffset
from pyspark_kafka._connector.source.driver.micro_batch import KafkaMicroBatchStream
from pyspark_kafka.checkpoint.topic_ids import TopicIdentities
from pyspark_kafka.connector import Offset, ReadAllAvailable
from pyspark_kafka.errors import DataLossError

T, U = TopicPartition("t", 0), TopicPartition("u", 0)
ALL = ReadAllAvailable()
watched = partial(stream_of, "t", "u", starting=Earliest())


def begin(offsets: ScriptedOffsets, stream: KafkaMicroBatchStream) -> Offset:
    """Run a first batch over two topics of 10 records."""
    offsets.logs = {T: (0, 10), U: (0, 10)}
    start = stream.initialOffset()
    end = stream.latestOffset(start, ALL)
    assert ranges(stream, start, end) == ["t-0 [0, 10)", "u-0 [0, 10)"]
    return end


def recreate(offsets: ScriptedOffsets, end: int) -> None:
    offsets.topic_ids["t"] = "another"
    offsets.logs[T] = (0, end)


@pytest.mark.parametrize("end", [3, 10, 40])
def test_a_recreated_topic_is_data_loss_whatever_its_end_is(offsets: ScriptedOffsets, end: int) -> None:
    stream = watched()
    first = begin(offsets, stream)
    recreate(offsets, end)
    with pytest.raises(DataLossError) as caught:
        stream.latestOffset(first, ALL)
    text = str(caught.value)
    assert text.startswith("[KAFKA_DATA_LOSS.TOPIC_RECREATED] Topics were recreated under the same name")
    assert "'t' (id t before, another now)" in text
    assert "Hint: Read the new topics from their beginning: move the query there with `pyspark-kafka" in text


@pytest.mark.parametrize("end", [3, 10, 40])
def test_recreated_topic_is_read_from_its_beginning_if_loss_is_tolerated(
    offsets: ScriptedOffsets, caplog: pytest.LogCaptureFixture, end: int
) -> None:
    stream = watched(fail_on_data_loss=False)
    first = begin(offsets, stream)
    recreate(offsets, end)
    offsets.logs[U] = (0, 12)
    with caplog.at_level(logging.WARNING):
        second = stream.latestOffset(first, ALL)
        assert ranges(stream, first, second) == [f"t-0 [0, {end})", "u-0 [10, 12)"]
    assert "KAFKA_DATA_LOSS.TOPIC_RECREATED" in caplog.text
    assert "The query continues, because 'failOnDataLoss' is false." in caplog.text
    # No advice to do what was done.
    assert "Hint:" not in caplog.text
    # Once: from then on it is the query's topic.
    offsets.logs[T] = (0, end + 5)
    third = stream.latestOffset(second, ALL)
    assert ranges(stream, second, third) == [f"t-0 [{end}, {end + 5})"]


def test_recreated_topic_is_noticed_between_the_end_and_the_plan_of_a_batch(offsets: ScriptedOffsets) -> None:
    first_run = watched()
    first = begin(offsets, first_run)
    offsets.logs = {T: (0, 15), U: (0, 10)}
    second = first_run.latestOffset(first, ALL)
    recreate(offsets, 15)
    # Planned again, as after a failure: the end is not one that the last look-up gave.
    with pytest.raises(DataLossError, match="TOPIC_RECREATED"):
        ranges(first_run, first, KafkaSourceOffset({T: 14, U: 10}))
    assert second == KafkaSourceOffset({T: 15, U: 10})


def test_ids_in_the_checkpoint_outlive_the_run(offsets: ScriptedOffsets, tmp_path: Path) -> None:
    first = begin(offsets, watched(checkpoint_location=str(tmp_path)))
    recreate(offsets, 40)
    with pytest.raises(DataLossError, match="TOPIC_RECREATED"):
        watched(checkpoint_location=str(tmp_path)).latestOffset(first, ALL)
    # Without the checkpoint nobody can know.
    assert watched().latestOffset(first, ALL) == KafkaSourceOffset({T: 40, U: 10})
    assert TopicIdentities.from_bytes((tmp_path / "sources/0/topic-ids").read_bytes(), "it").ids == {"t": "t", "u": "u"}


def test_batch_that_reads_a_recreated_topic_does_so_again_if_it_is_planned_again(
    offsets: ScriptedOffsets, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"checkpoint_location": str(tmp_path), "fail_on_data_loss": False}
    stream = watched(**options)
    first = begin(offsets, stream)
    # The new topic ends where the former topic ended.
    recreate(offsets, 10)
    offsets.logs[U] = (0, 12)
    second = stream.latestOffset(first, ALL)
    expected = ["t-0 [0, 10)", "u-0 [10, 12)"]
    assert ranges(stream, first, second) == expected
    # The run dies after planning; the next one is given the logged batch, also one that fails on data loss.
    for fail in (False, True):
        again = watched(checkpoint_location=str(tmp_path), fail_on_data_loss=fail)
        assert ranges(again, first, again.deserializeOffset(second.json())) == expected
    # The batch after it continues.
    offsets.logs = {T: (0, 13), U: (0, 12)}
    last = watched(checkpoint_location=str(tmp_path))
    third = last.latestOffset(second, ALL)
    assert ranges(last, second, third) == ["t-0 [10, 13)"]


def test_a_topic_that_comes_later_is_the_querys_from_then_on(offsets: ScriptedOffsets, tmp_path: Path) -> None:
    offsets.logs = {U: (0, 1)}
    stream = watched(checkpoint_location=str(tmp_path))
    first = stream.latestOffset(stream.initialOffset(), ALL)
    offsets.logs[T] = (0, 5)
    second = stream.latestOffset(first, ALL)
    recreate(offsets, 50)
    with pytest.raises(DataLossError, match="TOPIC_RECREATED"):
        watched(checkpoint_location=str(tmp_path)).latestOffset(second, ALL)


@pytest.mark.parametrize("fail_on_data_loss", [True, False])
def test_a_topic_that_was_gone_for_a_batch_is_a_new_one_and_read_once(
    offsets: ScriptedOffsets, tmp_path: Path, caplog: pytest.LogCaptureFixture, *, fail_on_data_loss: bool
) -> None:
    tolerant = watched(fail_on_data_loss=False, checkpoint_location=str(tmp_path))
    first = begin(offsets, tolerant)
    del offsets.logs[T]
    second = tolerant.latestOffset(first, ALL)
    assert ranges(tolerant, first, second) == []
    stream = watched(fail_on_data_loss=fail_on_data_loss, checkpoint_location=str(tmp_path))
    recreate(offsets, 5)
    third = stream.latestOffset(second, ALL)
    assert ranges(stream, second, third) == ["t-0 [0, 5)"]
    caplog.clear()
    offsets.logs[U] = (0, 11)
    fourth = stream.latestOffset(third, ALL)
    assert ranges(stream, third, fourth) == ["u-0 [10, 11)"]
    assert "TOPIC_RECREATED" not in caplog.text
    # From there on it is watched like any other.
    offsets.topic_ids["t"] = "third"
    if fail_on_data_loss:
        with pytest.raises(DataLossError, match=r"'t' \(id another before, third now\)"):
            stream.latestOffset(fourth, ALL)


def test_topics_that_are_gone_from_position_and_subscription_are_not_kept(
    offsets: ScriptedOffsets, tmp_path: Path
) -> None:
    stream = watched(fail_on_data_loss=False, checkpoint_location=str(tmp_path))
    first = begin(offsets, stream)
    del offsets.logs[T]
    second = stream.latestOffset(first, ALL)
    stream.latestOffset(second, ALL)
    assert TopicIdentities.from_bytes((tmp_path / "sources/0/topic-ids").read_bytes(), "it").ids == {"u": "u"}


def test_recreated_topic_with_the_former_end_is_reported_once(
    offsets: ScriptedOffsets, caplog: pytest.LogCaptureFixture
) -> None:
    stream = watched(fail_on_data_loss=False)
    first = begin(offsets, stream)
    recreate(offsets, 10)
    for _ in range(3):
        # No news, so no batch, until there is more than before.
        assert stream.latestOffset(first, ALL) == first
    assert caplog.text.count("TOPIC_RECREATED") == 1
    offsets.logs[T] = (0, 11)
    assert ranges(stream, first, stream.latestOffset(first, ALL)) == ["t-0 [0, 11)"]


def test_recreated_topic_goes_unnoticed_without_topic_ids(
    offsets: ScriptedOffsets, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = watched()
    first = begin(offsets, stream)
    recreate(offsets, 40)
    monkeypatch.setattr(offsets, "topic_ids", {})
    assert stream.latestOffset(first, ALL) == KafkaSourceOffset({T: 40, U: 10})
