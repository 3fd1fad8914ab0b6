"""Java's partitioner and the grouping of rows by partition."""

from __future__ import annotations

import pyarrow as pa
import pytest
from kafka.partitioner.default import murmur2

from pyspark_kafka.errors import RecordError, SchemaError
from pyspark_kafka.records import group_by_partition, murmur2_partitions

# From Kafka's own UtilsTest.testMurmur2 (Java).
JAVA_VECTORS = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


@pytest.mark.parametrize("count", [1, 2, 7, 100, 2**31 - 1])
def test_partitions_are_those_of_java(count: int) -> None:
    keys = pa.array(list(JAVA_VECTORS))
    expected = [(hashed & 0x7FFFFFFF) % count for hashed in JAVA_VECTORS.values()]
    assert murmur2_partitions(keys, count).to_pylist() == expected


def test_partitions_equal_kafka_pythons_for_keys_of_every_length() -> None:
    keys = [bytes((index * 37 + at * 101) % 256 for at in range(index)) for index in range(100)]
    expected = [(murmur2(key) & 0x7FFFFFFF) % 2_147_483_647 for key in keys]
    assert murmur2_partitions(pa.array(keys), 2_147_483_647).to_pylist() == expected


def test_null_keys_have_no_partition() -> None:
    assert murmur2_partitions(pa.array([None, b"21", None]), 100).to_pylist() == [-1, 40, -1]
    assert murmur2_partitions(pa.nulls(2), 100).to_pylist() == [-1, -1]
    assert murmur2_partitions(pa.array([], pa.binary()), 100).to_pylist() == []


def test_string_keys_and_slices_are_hashed_by_their_bytes() -> None:
    keys = pa.array(["x", "foobar", "abc", "y"], pa.large_string()).slice(1, 2)
    assert murmur2_partitions(keys, 1000).to_pylist() == [(-790332482 & 0x7FFFFFFF) % 1000, 479470107 % 1000]


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="0 partitions"):
        murmur2_partitions(pa.array([b"a"]), 0)
    with pytest.raises(SchemaError, match="column 'key' has type int64"):
        murmur2_partitions(pa.array([1]), 3)


def test_grouping_is_stable_and_complete() -> None:
    partitions = pa.array([2, 0, 3, 0, 2, 2, 0], pa.int32())
    indices, bounds = group_by_partition(partitions, 5)
    assert indices.tolist() == [1, 3, 6, 0, 4, 5, 2]
    assert bounds == (0, 3, 3, 6, 7, 7)


def test_grouping_takes_slices_and_nothing() -> None:
    partitions = pa.array([9, 1, 0, 1, 9], pa.int32()).slice(1, 3)
    indices, bounds = group_by_partition(partitions, 2)
    assert (indices.tolist(), bounds) == ([1, 0, 2], (0, 1, 3))
    indices, bounds = group_by_partition(pa.array([], pa.int32()), 2)
    assert (indices.tolist(), bounds) == ([], (0, 0, 0))


@pytest.mark.parametrize("wrong", [-1, 3, 2**31 - 1, -(2**31), None])
def test_a_partition_that_does_not_exist_names_its_row(wrong: int | None) -> None:
    with pytest.raises(RecordError, match=rf"PARTITION_OUT_OF_RANGE.*row 2 is for partition {wrong}, .* has 3 "):
        group_by_partition(pa.array([0, 2, wrong], pa.int32()), 3)


def test_partitions_of_another_type_are_refused() -> None:
    with pytest.raises(ValueError, match="int64"):
        group_by_partition(pa.array([0, 1]), 3)
