"""The file that keeps the ids of a query's topics: its bytes, and the errors of damaged ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from kit.texts import said
from pyspark_kafka.checkpoint.files import CheckpointFiles
from pyspark_kafka.checkpoint.topic_ids import TopicIdentities, TopicIdsFile
from pyspark_kafka.errors import CheckpointError


@pytest.mark.parametrize(("directory", "place"), [("sources/1", "sources/1/topic-ids"), ("", "topic-ids")])
def test_file_lies_in_the_directory_of_its_source(tmp_path: Path, directory: str, place: str) -> None:
    file = TopicIdsFile(CheckpointFiles(str(tmp_path)), directory)
    assert file.read() == TopicIdentities()
    identities = TopicIdentities({"t": "1"})
    file.replace(identities)
    assert file.read() == identities
    assert (tmp_path / place).read_bytes() == identities.to_bytes()


def test_bytes_are_a_version_and_json_with_topics_by_name() -> None:
    identities = TopicIdentities({"ü": "2", "t": "1"}, '{"t":{"0":1}}', ("t",))
    assert identities.to_bytes().decode() == (
        'v1\n{"topics": {"t": "1", "ü": "2"}, "restart": {"end": "{\\"t\\":{\\"0\\":1}}", "topics": ["t"]}}\n'
    )
    assert TopicIdentities({"t": "1"}).to_bytes() == b'v1\n{"topics": {"t": "1"}, "restart": null}\n'


def test_topic_ids_round_trip() -> None:
    identities = TopicIdentities({"t": "1", "ü": "2"}, '{"t":{"0":1}}', ("t",))
    assert TopicIdentities.from_bytes(identities.to_bytes(), "it") == identities
    assert TopicIdentities.from_bytes(TopicIdentities().to_bytes(), "it") == TopicIdentities()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "it begins with '', not with v1"),
        (b"v", "it begins with 'v', not with v1"),
        (b"v1\n", "Expecting value at character 0 of 0"),
        (b'v1\n{"topics": {"orders": "Ab', "Unterminated string starting at character 22 of 25"),
        (b'v1\n{"topics": []}', "its JSON does not have the members that are written there"),
        (b'v1\n{"topics": {}, "restart": 5}', "its JSON does not have the members that are written there"),
        (b"v1\n" + b"[" * 100_000, "its JSON does not have the members that are written there"),
        (b"v1\n\xff\xfe", "Expecting value at character 0 of 2"),
    ],
)
def test_damaged_file_is_named_with_the_cost_of_removing_it(data: bytes, reason: str) -> None:
    with pytest.raises(CheckpointError) as caught:
        TopicIdentities.from_bytes(data, "file sources/0/topic-ids of checkpoint /c")
    assert said(caught.value) == (
        "[CHECKPOINT_TOPIC_IDS_INVALID] The ids of the query's topics cannot be read from file sources/0/topic-ids of "
        f"checkpoint /c: it is damaged: {reason}. Nothing was read. Hint: Restore the file from a copy of the "
        "checkpoint. If there is none, remove it, but only if no topic of the query was recreated since its last "
        "batch: without the file the query assumes that the current topics are the topics that it has read, and "
        "continues at its old offsets in a recreated topic without an error."
    )


def test_file_of_a_newer_version_asks_for_that_version() -> None:
    with pytest.raises(CheckpointError) as caught:
        TopicIdentities.from_bytes(b"v2\n{}", "file sources/0/topic-ids of checkpoint /c")
    assert said(caught.value) == (
        "[CHECKPOINT_VERSION] The ids of the query's topics cannot be read from file sources/0/topic-ids of checkpoint "
        "/c: it was written by a newer version, as v2; this one reads v1. Nothing was read. Hint: Run the query with "
        "the version of pyspark-kafka that wrote the checkpoint, or a newer one."
    )
