"""How the page of a report gets into its file."""

from __future__ import annotations

import errno
import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kit.checkpoint_files import QUERY_ID, write_checkpoint
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka._ops.operations.reports.generate import gather_report, write_report
from pyspark_kafka._ops.operations.reports.render import ReportData
from pyspark_kafka._ops.operations.reports.timeline import BatchStats
from pyspark_kafka.errors import ConnectorError


def report(topic: str = "t") -> ReportData:
    of_topic = {TopicPartition(topic, 0): 1, TopicPartition(topic, 1): 9}
    return ReportData("Query q", topic, [BatchStats(0, 0, 1, True, 1)], 0, of_topic, of_topic, of_topic, [topic])


@pytest.mark.parametrize("topic", ["half \ud800", "moved \x1b[2J"])
def test_topic_whose_name_cannot_be_written_is_escaped(tmp_path: Path, topic: str) -> None:
    file = tmp_path / "page.html"
    write_report(report(topic), file)
    page = file.read_text(encoding="utf-8")
    assert repr(topic)[1:-1] in page
    assert topic not in page


def test_page_replaces_another_one_and_keeps_its_rights(tmp_path: Path) -> None:
    file, link = tmp_path / "page.html", tmp_path / "link.html"
    file.write_text("former")
    file.chmod(0o640)
    link.symlink_to(file)
    write_report(report(), link)
    assert "Query q" in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert link.is_symlink()
    assert sorted(tmp_path.iterdir()) == [link, file]


def test_disk_that_is_full_leaves_the_former_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "page.html"
    file.write_text("former")

    def half(path: Path, _data: bytes) -> None:
        path.touch()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", half)
    with pytest.raises(ConnectorError, match="No space left on device") as raised:
        write_report(report(), file)
    assert raised.value.condition == "REPORT_NOT_WRITTEN"
    assert file.read_text() == "former"
    assert list(tmp_path.iterdir()) == [file]


def test_file_is_written_in_place_if_nothing_can_take_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "page.html"
    file.write_text("former")

    def refuse(_: Path, _target: Path) -> None:
        raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))

    monkeypatch.setattr(Path, "replace", refuse)
    write_report(report(), file)
    assert "Query q" in file.read_text()
    assert list(tmp_path.iterdir()) == [file]


def test_directory_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConnectorError, match=r"No such file or directory\. The checkpoint was only read\."):
        write_report(report(), tmp_path / "missing" / "page.html")


def test_page_is_written_to_a_pipe() -> None:
    reader, writer = os.pipe()
    with ThreadPoolExecutor(1) as pool, open(reader, "rb") as pipe:  # noqa: PTH123 - a descriptor
        page = pool.submit(pipe.read)
        write_report(report(), Path(f"/dev/fd/{writer}"))
        os.close(writer)
        assert b"Query q" in page.result()


@pytest.mark.parametrize(("query_id", "warned"), [(QUERY_ID, False), ("another", True)])
def test_progress_without_a_batch_of_the_query_is_a_warning(tmp_path: Path, query_id: str, warned: bool) -> None:
    write_checkpoint(tmp_path / "checkpoint", [{"t": {"0": 5}}])
    told = {"id": query_id, "batchId": 0, "timestamp": "2026-01-01T00:00:00.000Z", "numInputRows": 5}
    (tmp_path / "log").write_text(json.dumps({**told, "durationMs": {"addBatch": 5, "triggerExecution": 9}}))
    report = gather_report(str(tmp_path / "checkpoint"), batches=10, progress=tmp_path / "log")
    assert [each.endswith("has no progress of a batch of this query.") for each in report.warnings] == [True] * warned
