"""Event logs as Spark writes them, by their files."""

from __future__ import annotations

import gzip
from pathlib import Path

import cramjam
import pytest

from pyspark_kafka._ops.operations.reports import event_files
from pyspark_kafka._ops.operations.reports.event_files import event_lines
from pyspark_kafka.errors import ConnectorError


def zstd(text: str) -> bytes:
    return bytes(cramjam.zstd.compress(text.encode()))


def test_rolling_log_is_read_in_the_order_of_its_numbers(tmp_path: Path) -> None:
    log = tmp_path / "eventlog_v2_local-1"
    log.mkdir()
    # Spark closes a frame at each flush.
    (log / "events_9_local-1.zstd").write_bytes(zstd("first\n") + zstd("second\n"))
    (log / "events_10_local-1").write_text("third\nfourth")
    (log / "appstatus_local-1").touch()
    assert list(event_lines(log)) == ["first", "second", "third", "fourth"]


@pytest.mark.parametrize("data", [b"a\nb\n", zstd("a\nb\n"), gzip.compress(b"a\nb\n"), cramjam.lz4.compress(b"a\nb\n")])
def test_file_is_read_whatever_it_is_compressed_with(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "log").write_bytes(bytes(data))
    assert list(event_lines(tmp_path / "log")) == ["a", "b"]


@pytest.mark.parametrize("magic", [b"LZ4Block", b"\x82SNAPPY\x00", b"ZV\x01"])
def test_form_that_java_alone_reads_is_refused(tmp_path: Path, magic: bytes) -> None:
    (tmp_path / "log").write_bytes(magic + b"{\n{\n")
    with pytest.raises(ConnectorError, match="which cannot be read here") as caught:
        list(event_lines(tmp_path / "log"))
    assert caught.value.condition == "REPORT_PROGRESS_INVALID"


def test_log_that_spark_still_writes_is_read_up_to_its_last_whole_frame(tmp_path: Path) -> None:
    begun = zstd("".join(f"line {number}\n" for number in range(1_000)))
    (tmp_path / "log").write_bytes(begun + zstd("cut short\n" * 500)[:-4])
    found = list(event_lines(tmp_path / "log"))
    assert found[:900] == [f"line {number}" for number in range(900)]
    (tmp_path / "damaged").write_bytes(b"\x28\xb5\x2f\xfdnonsense")
    with pytest.raises(OSError, match="ZSTD"):
        list(event_lines(tmp_path / "damaged"))


def test_line_that_is_too_long_is_cut_and_the_next_one_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_files, "_MAX_LINE", 5_000)
    (tmp_path / "log").write_bytes(zstd("x" * 1_000_000 + "\nnext\n" + "y" * 4_000))
    long, following, last = event_lines(tmp_path / "log")
    assert len(long) < 10_000
    assert (following, last) == ("next", "y" * 4_000)


@pytest.mark.parametrize(("names", "hint"), [(["eventlog_v2_local-7"], "eventlog_v2_local-7"), ([], "one application")])
def test_directory_of_other_things_is_refused_with_the_logs_in_it(tmp_path: Path, names: list[str], hint: str) -> None:
    for name in names:
        (tmp_path / name).mkdir()
    with pytest.raises(ConnectorError, match="has no files") as caught:
        list(event_lines(tmp_path))
    assert hint in caught.value.hint
