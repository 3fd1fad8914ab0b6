"""The first batch's start is kept from the first time it is asked for: in memory, in its end, or in the checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kit.fixtures.offsets import ScriptedOffsets, ranges, stream_of
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._base.offsets import (
    AtTimestamp,
    Earliest,
    KafkaSourceOffset,
    Latest,
    RangeEdge,
    SpecificOffsets,
    SpecificTimestamps,
)
from pyspark_kafka._connector.source.driver.micro_batch import KafkaMicroBatchStream
from pyspark_kafka.connector import Offset, ReadAllAvailable, ReadMinRows
from pyspark_kafka.errors import CheckpointError, DataLossError, OptionError

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
ALL = ReadAllAvailable()


def logged(stream: KafkaMicroBatchStream, offset: Offset) -> Offset:
    """Hand an offset through a checkpoint."""
    return stream.deserializeOffset(offset.json())


@pytest.mark.parametrize(
    ("starting", "first"),
    [
        (Earliest(), 0),
        (SpecificOffsets({A: 3, B: 4}), 3),
        (SpecificOffsets({A: Earliest(), B: 4}), 0),
        (SpecificOffsets(topics={"t": Earliest()}), 0),
        (SpecificOffsets({A: Latest(), B: 4}), 10),
        (Latest(), 10),
        (SpecificTimestamps({A: 3, B: 4}), 3),
        (AtTimestamp(3), 3),
    ],
)
@pytest.mark.parametrize("fail_on_data_loss", [True, False])
def test_a_first_batch_is_planned_again_although_partitions_were_added_meanwhile(
    offsets: ScriptedOffsets,
    starting: RangeEdge,
    first: int,
    caplog: pytest.LogCaptureFixture,
    *,
    fail_on_data_loss: bool,
) -> None:
    offsets.logs = {A: (0, 10), B: (0, 10)}
    first_run = stream_of(starting=starting)
    start = first_run.initialOffset()
    offsets.logs = {A: (0, 12), B: (0, 12)}
    end = first_run.latestOffset(start, ALL)
    expected = ranges(first_run, start, end)
    assert expected[0] == f"t-0 [{first}, 12)"
    added, topic = TopicPartition("t", 2), TopicPartition("u", 0)
    offsets.logs = {A: (0, 12), B: (0, 12), added: (0, 2), topic: (0, 3)}
    second_run = stream_of(starting=starting, fail_on_data_loss=fail_on_data_loss)
    again = second_run.initialOffset()
    assert ranges(second_run, again, logged(second_run, end)) == expected
    assert caplog.messages == []
    # What is new is read from its beginning by the batch after it.
    after = second_run.latestOffset(logged(second_run, end), ALL)
    assert ranges(second_run, logged(second_run, end), after) == ["t-2 [0, 2)", "u-0 [0, 3)"]


def test_a_time_that_has_no_record_any_more_does_not_keep_a_planned_first_batch_from_its_start(
    offsets: ScriptedOffsets,
) -> None:
    offsets.logs = {A: (0, 10)}
    first_run = stream_of(starting=AtTimestamp(4))
    end = first_run.latestOffset(first_run.initialOffset(), ALL)
    later = AtTimestamp(400)
    second_run = stream_of(starting=later)
    assert ranges(second_run, second_run.initialOffset(), logged(second_run, end)) == ["t-0 [4, 10)"]
    new = stream_of(starting=later)
    start = new.initialOffset()
    with pytest.raises(OptionError, match="NO_OFFSET_FOR_TIMESTAMP"):
        new.latestOffset(start, ALL)


def test_a_partition_that_is_deleted_before_the_first_end_is_still_data_loss(offsets: ScriptedOffsets) -> None:
    offsets.logs = {A: (0, 10), B: (0, 10)}
    stream = stream_of(starting=Earliest())
    start = stream.initialOffset()
    del offsets.logs[B]
    with pytest.raises(DataLossError, match="PARTITIONS_DELETED"):
        ranges(stream, start, stream.latestOffset(start, ALL))


def test_run_resolves_its_start_once(offsets: ScriptedOffsets) -> None:
    offsets.logs = {A: (0, 10)}
    stream = stream_of()
    first = stream.initialOffset()
    offsets.logs = {A: (0, 25)}
    assert stream.initialOffset() == first == KafkaSourceOffset({A: 10})


def test_a_first_batch_left_uncommitted_is_planned_again_from_where_it_started(offsets: ScriptedOffsets) -> None:
    offsets.logs = {A: (0, 10), B: (0, 5)}
    first_run = stream_of(starting=Latest())
    start = first_run.initialOffset()
    offsets.logs = {A: (0, 14), B: (0, 5)}
    end = first_run.latestOffset(start, ALL)
    assert end.json() == '{"t":{"00":10,"0":14,"01":5,"1":5}}'
    assert ranges(first_run, start, end) == ["t-0 [10, 14)"]

    offsets.logs = {A: (0, 30), B: (0, 9)}
    second_run = stream_of(starting=Latest())
    again = second_run.initialOffset()
    assert again == KafkaSourceOffset({A: 30, B: 9})
    assert ranges(second_run, again, logged(second_run, end)) == ["t-0 [10, 14)"]
    # What came while no run was there is read next.
    next_end = second_run.latestOffset(logged(second_run, end), ALL)
    assert next_end.json() == '{"t":{"0":30,"1":9}}'
    assert ranges(second_run, logged(second_run, end), next_end) == ["t-0 [14, 30)", "t-1 [5, 9)"]


def test_an_empty_first_batch_carries_its_start_as_well(offsets: ScriptedOffsets) -> None:
    offsets.logs = {A: (0, 10)}
    first_run = stream_of(starting=Latest())
    end = first_run.latestOffset(first_run.initialOffset(), ALL)
    assert end.json() == '{"t":{"00":10,"0":10}}'
    offsets.logs = {A: (0, 12)}
    second_run = stream_of(starting=Latest())
    # Without the start, an end below the start would look like lost data.
    assert ranges(second_run, second_run.initialOffset(), logged(second_run, end)) == []
    assert ranges(second_run, end, second_run.latestOffset(logged(second_run, end), ALL)) == ["t-0 [10, 12)"]


def test_end_without_new_records_is_the_logged_end_of_the_first_batch(offsets: ScriptedOffsets) -> None:
    offsets.logs = {A: (0, 10)}
    stream = stream_of(starting=Latest())
    end = stream.latestOffset(stream.initialOffset(), ALL)
    assert stream.latestOffset(logged(stream, end), ALL) == end
    assert stream.latestOffset(logged(stream, end), ReadMinRows(1)) == end


def test_start_is_carried_by_the_first_end_only(offsets: ScriptedOffsets) -> None:
    offsets.logs = {A: (0, 10)}
    stream = stream_of(starting=Latest())
    stream.initialOffset()
    stream.latestOffset(KafkaSourceOffset({A: 7}), ALL)
    # A batch of a query that continues may begin by chance where this run would have started a new query.
    offsets.logs = {A: (0, 20)}
    assert stream.latestOffset(KafkaSourceOffset({A: 10}), ALL).json() == '{"t":{"0":20}}'


@pytest.mark.parametrize(
    ("starting", "carried"),
    [
        (Earliest(), False),
        (SpecificOffsets({A: 3}), False),
        (SpecificOffsets({A: Earliest()}), False),
        (SpecificOffsets(topics={"t": Earliest()}), False),
        (SpecificOffsets({A: Latest()}), True),
        (SpecificOffsets(topics={"t": Latest()}), True),
        (Latest(), True),
        # It may have been "2 hours ago".
        (AtTimestamp(4), True),
    ],
)
def test_a_start_is_carried_where_asking_again_could_give_another(
    offsets: ScriptedOffsets, starting: RangeEdge, carried: bool
) -> None:
    offsets.logs = {A: (0, 10)}
    stream = stream_of(starting=starting)
    end = stream.latestOffset(stream.initialOffset(), ALL)
    assert isinstance(end, KafkaSourceOffset)
    assert (end.starts is not None) is carried


def test_a_pattern_without_a_match_carries_nothing(offsets: ScriptedOffsets) -> None:
    stream = stream_of(starting=Latest())
    start = stream.initialOffset()
    assert stream.latestOffset(start, ALL).json() == "{}"
    # A topic that comes later is new to the query: from its beginning.
    offsets.logs = {A: (0, 3)}
    end = stream.latestOffset(start, ALL)
    assert ranges(stream, start, end) == ["t-0 [0, 3)"]


def test_start_is_kept_in_the_checkpoint_and_offsets_stay_plain(offsets: ScriptedOffsets, tmp_path: Path) -> None:
    offsets.logs = {A: (0, 10)}
    options: dict[str, Any] = {"starting": Latest(), "checkpoint_location": str(tmp_path), "source_index": "1"}
    first_run = stream_of(**options)
    assert first_run.initialOffset() == KafkaSourceOffset({A: 10})
    assert (tmp_path / "sources" / "1" / "0").read_bytes() == b'\0v1\n{"t":{"0":10}}'
    # Stopped before any batch; records come meanwhile.
    offsets.logs = {A: (0, 14)}
    second_run = stream_of(**options)
    start = second_run.initialOffset()
    assert start == KafkaSourceOffset({A: 10})
    end = second_run.latestOffset(start, ALL)
    assert end.json() == '{"t":{"0":14}}'
    assert ranges(second_run, start, end) == ["t-0 [10, 14)"]


def test_kept_start_takes_precedence_over_changed_options(offsets: ScriptedOffsets, tmp_path: Path) -> None:
    offsets.logs = {A: (2, 10)}
    stream_of(starting=Latest(), checkpoint_location=str(tmp_path)).initialOffset()
    again = stream_of(starting=Earliest(), checkpoint_location=str(tmp_path))
    assert again.initialOffset() == KafkaSourceOffset({A: 10})


def test_the_checkpoint_of_a_query_that_has_run_is_refused_for_a_new_one(
    offsets: ScriptedOffsets, tmp_path: Path
) -> None:
    offsets.logs = {A: (0, 10)}
    (tmp_path / "offsets").mkdir()
    for batch in ("0", "1", "12"):
        (tmp_path / "offsets" / batch).write_text("v1\n{}\n")
    with pytest.raises(CheckpointError) as caught:
        stream_of(checkpoint_location=str(tmp_path)).initialOffset()
    text = str(caught.value)
    assert text.startswith("[CHECKPOINT_OF_ANOTHER_QUERY] Option 'checkpointLocation' of the source names ")
    assert f"{tmp_path}, which belongs to a query that has come to batch 12, but this query is new" in text
    assert "Hint: Set the checkpointLocation of the source to the checkpointLocation of the query's writer." in text
    assert not (tmp_path / "sources").exists()


def test_a_first_batch_that_was_only_planned_does_not_make_a_checkpoint_anothers(
    offsets: ScriptedOffsets, tmp_path: Path
) -> None:
    offsets.logs = {A: (0, 10)}
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "0").write_text("v1\n{}\n")
    assert stream_of(checkpoint_location=str(tmp_path)).initialOffset() == KafkaSourceOffset({A: 10})


def test_start_after_the_end_of_its_log_is_not_kept_in_the_checkpoint(offsets: ScriptedOffsets, tmp_path: Path) -> None:
    offsets.logs = {A: (0, 10), B: (0, 10)}
    location = str(tmp_path)
    with pytest.raises(DataLossError, match=r"PARTITION_OFFSET_CHANGED\].* t-0: the offset to continue from was 99"):
        stream_of(starting=SpecificOffsets({A: 99, B: 5}), checkpoint_location=location).initialOffset()
    # The corrected query starts where it says.
    corrected = stream_of(starting=SpecificOffsets({A: 9, B: 5}), checkpoint_location=location)
    assert corrected.initialOffset() == KafkaSourceOffset({A: 9, B: 5})


@pytest.mark.parametrize("more", [{"fail_on_data_loss": False}, {"starting": SpecificOffsets({A: 12})}])
def test_start_after_the_visible_end_is_kept_if_it_is_not_lost(
    offsets: ScriptedOffsets, tmp_path: Path, more: dict[str, Any]
) -> None:
    offsets.logs, offsets.log_ends = {A: (0, 10)}, {A: 12}
    stream = stream_of(**{"starting": SpecificOffsets({A: 13}), "checkpoint_location": str(tmp_path), **more})
    assert stream.initialOffset().partitions[A] > 10
