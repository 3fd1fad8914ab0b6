from __future__ import annotations

import pytest

from kit.checkpoint_files import offsets_text
from pyspark_kafka._ops.operations.checkpoints.forking.raw_log import LogText


@pytest.mark.parametrize("version", [1, 2])
def test_file_that_is_not_changed_keeps_its_bytes(version: int) -> None:
    data = offsets_text(3, [{"t": {"0": 5}}, '{"logOffset":3}', None], version=version).encode()
    assert LogText.parse(data).to_bytes() == data


@pytest.mark.parametrize("version", [1, 2])
def test_ends_are_replaced_by_the_names_of_sources(version: int) -> None:
    text = LogText.parse(offsets_text(3, [{"t": {"0": 5}}, '{"logOffset":3}'], version=version).encode())
    changed = text.with_ends({"0": '{"t":{"0":1}}'})
    assert changed.lines == ((("", "1:")[version - 1] and "0:" + '{"t":{"0":1}}') or '{"t":{"0":1}}', text.lines[1])
    assert changed.metadata == text.metadata


def test_metadata_keep_what_is_not_changed() -> None:
    changed = LogText("v1", '{"batchWatermarkMs":5,"conf":{"a":"ä"}}').with_metadata(batchWatermarkMs=0)
    assert changed.metadata == '{"batchWatermarkMs":0,"conf":{"a":"ä"}}'
    assert changed.value("batchWatermarkMs") == 0


def test_file_of_spark_without_metadata_stays_without() -> None:
    assert LogText("v1", "", ("{}",)).with_metadata(batchWatermarkMs=0) == LogText("v1", "", ("{}",))
    assert LogText("v1", "").value("batchWatermarkMs") is None
