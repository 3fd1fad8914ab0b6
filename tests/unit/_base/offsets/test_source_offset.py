"""The JSON of offsets: equal to that of Spark's connector, stable, and strict where it is read back."""

from __future__ import annotations

import pickle

import pytest

from kit.texts import said
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._base.offsets import (
    KafkaSourceOffset,
    Latest,
    SpecificOffsets,
)
from pyspark_kafka.errors import CheckpointError

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def test_json_is_compact_with_topics_by_name_and_partitions_by_number() -> None:
    offset = KafkaSourceOffset({TopicPartition("t", 10): 3, B0: 2**63 - 1, TopicPartition("t", 9): 0})
    assert offset.json() == '{"b":{"0":9223372036854775807},"t":{"9":0,"10":3}}'
    assert str(offset) == offset.json()


def test_json_of_sparks_own_checkpoint_is_read() -> None:
    # The text that spark-sql-kafka-0-10 4.2.0 writes into an offset log.
    offset = KafkaSourceOffset.from_json('{"topic-0":{"0":3,"1":5},"topic-1":{"0":0}}')
    assert offset.partitions == {
        TopicPartition("topic-0", 0): 3,
        TopicPartition("topic-0", 1): 5,
        TopicPartition("topic-1", 0): 0,
    }


def test_offsets_are_equal_by_value_whatever_the_order_they_were_made_in() -> None:
    one, other = KafkaSourceOffset({A0: 1, A1: 2}), KafkaSourceOffset({A1: 2, A0: 1})
    assert one == other
    assert hash(one) == hash(other)
    assert one.json() == other.json()
    assert one != KafkaSourceOffset({A0: 1, A1: 3})


def test_an_offset_does_not_change_with_the_mapping_it_was_made_from() -> None:
    partitions = {A0: 1}
    offset = KafkaSourceOffset(partitions)
    partitions[A0] = 5
    assert offset.partitions == {A0: 1}


def test_the_end_of_a_first_batch_carries_its_start_under_zero_padded_numbers() -> None:
    text = '{"a":{"00":90,"0":100,"01":7,"1":7},"b":{"0":3}}'
    offset = KafkaSourceOffset({A0: 100, A1: 7, B0: 3}, starts={A0: 90, A1: 7})
    assert offset.json() == text
    read = KafkaSourceOffset.from_json(text)
    assert read == offset
    assert (read.partitions, read.starts) == ({A0: 100, A1: 7, B0: 3}, {A0: 90, A1: 7})
    assert KafkaSourceOffset.from_json('{"a":{"0":1}}').starts is None
    # Equal texts are equal offsets.
    assert KafkaSourceOffset({A0: 1}, starts={}) == KafkaSourceOffset({A0: 1})


def test_a_carried_start_may_be_of_a_partition_that_has_no_end_any_more() -> None:
    text = '{"a":{"0":5},"t":{"012":4}}'
    offset = KafkaSourceOffset.from_json(text)
    assert (offset.partitions, offset.starts) == ({A0: 5}, {TopicPartition("t", 12): 4})
    assert offset.json() == text


@pytest.mark.parametrize("text", ['{"a":{"000":1,"0":1}}', '{"a":{"0x":1}}', '{"a":{"00":-1,"0":1}}'])
def test_a_carried_start_is_read_as_strictly_as_an_end(text: str) -> None:
    with pytest.raises(CheckpointError, match="CHECKPOINT_OFFSET_INVALID"):
        KafkaSourceOffset.from_json(text)


def test_dict_and_pickle_round_trips() -> None:
    offset = KafkaSourceOffset({A0: 1, B0: 2})
    assert offset.to_dict() == {"a": {"0": 1}, "b": {"0": 2}}
    assert KafkaSourceOffset.from_dict(offset.to_dict()) == offset
    assert pickle.loads(pickle.dumps(offset)) == offset  # noqa: S301 - our own bytes


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "it is not JSON"),
        ("{", "it is not JSON"),
        ("[1]", "the outermost JSON value must be an object"),
        ('"earliest"', "the outermost JSON value must be an object"),
        ('{"a":1}', "topic 'a' must have an object"),
        ('{"a":"earliest"}', "topic 'a' must have an object"),
        ('{"a":{"0":-1}}', "a-0 has '-1' where an offset"),
        ('{"a":{"0":-2}}', "a-0 has '-2' where an offset"),
        ('{"a":{"0":1.0}}', "a-0 has '1.0' where an offset"),
        ('{"a":{"0":"1"}}', "a-0 has '1' where an offset"),
        ('{"a":{"0":true}}', "a-0 has 'True' where an offset"),
        ('{"a":{"0":null}}', "a-0 has 'None' where an offset"),
        ('{"a":{"0":9223372036854775808}}', "a-0 has '9223372036854775808' where an offset"),
        ('{"a":{"0":NaN}}', "NaN is not a number of JSON"),
        ('{"a":{"0":1' + "0" * 30 + "}}", "does not fit in 64 bits"),
        ('{"a":{"001":1}}', "topic 'a' has '01' as a partition number"),
        ('{"a":{"-1":1}}', "topic 'a' has '-1' as a partition number"),
        ('{"a":{"٣":1}}', "as a partition number"),
        ('{"a":{"2147483648":1}}', "topic 'a' has '2147483648' as a partition number"),
        ('{"":{"0":1}}', "'' is not a topic name"),
        ('{"a":{"0":1,"0":2}}', "'0' stands in it twice"),
        ('{"a":{"0":1},"a":{"1":2}}', "'a' stands in it twice"),
        ("[" * 100_000, "it is nested too deeply"),
    ],
    ids=lambda text: text[:24],
)
def test_a_checkpoint_offset_that_is_no_offset_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(CheckpointError) as caught:
        KafkaSourceOffset.from_json(text)
    assert caught.value.condition == "CHECKPOINT_OFFSET_INVALID"
    assert reason in str(caught.value)
    assert len(str(caught.value)) < 1000


def test_the_checkpoint_error_has_its_text() -> None:
    with pytest.raises(CheckpointError) as caught:
        KafkaSourceOffset.from_json('{"a":{"0":-1}}')
    assert said(caught.value) == (
        '[CHECKPOINT_OFFSET_INVALID] The source offset \'{"a":{"0":-1}}\' of the checkpoint cannot be read: a-0 has '
        "'-1' where an offset, a whole number from 0, must be. Nothing was read. Hint: An offset of a Kafka source "
        'looks like {"topicA":{"0":23,"1":40}}. Restore the checkpoint from a copy, or start the query with a new '
        "checkpointLocation."
    )


@pytest.mark.parametrize("nested", [{"a": {0: 1}}, {"a": [1]}, {1: {"0": 1}}, {"a": {"0": None}}])
def test_a_checkpoint_mapping_of_another_shape_is_refused(nested: dict[str, object]) -> None:
    with pytest.raises(CheckpointError, match="CHECKPOINT_OFFSET_INVALID"):
        KafkaSourceOffset.from_dict(nested)


def test_specific_offsets_are_values() -> None:
    one, other = SpecificOffsets({A0: 1, A1: Latest()}), SpecificOffsets({A1: Latest(), A0: 1})
    assert one == other
    assert hash(one) == hash(other)
    assert pickle.loads(pickle.dumps(one)) == one  # noqa: S301 - our own bytes


def test_words_in_a_checkpoint_would_leave_a_position_open() -> None:
    with pytest.raises(CheckpointError, match="cannot be read"):
        KafkaSourceOffset.from_json('{"a":{"0":"earliest"}}')
