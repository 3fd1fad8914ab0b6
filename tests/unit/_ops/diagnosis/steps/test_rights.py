from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pyspark_kafka._client.client.queries.rights import Operation
from pyspark_kafka._client.options import parse_stream_read_options
from pyspark_kafka._ops.diagnosis.findings import FindingStatus
from pyspark_kafka._ops.diagnosis.steps import rights


def findings(monkeypatch: pytest.MonkeyPatch, *, held: bool, **options: str) -> list[Any]:
    """Return what is found about a stream whose user may do all but, perhaps, read the group."""
    read = parse_stream_read_options({"kafka.bootstrap.servers": "a:1", "subscribe": "t", **options})
    settings = SimpleNamespace(read=read, write=None, topics=(), connection=read.connection)
    client = SimpleNamespace(any_broker=SimpleNamespace(connect=lambda _: None))
    context: Any = SimpleNamespace(
        settings=settings, client=client, step=lambda: None, usable=[("a", 1)], metadata=None
    )
    everything = frozenset(Operation)
    monkeypatch.setattr(rights, "probe_topic_rights", lambda _, names, __: dict.fromkeys(names, everything))
    monkeypatch.setattr(rights, "read_topics", lambda _: ["t"])
    monkeypatch.setattr(rights, "wanted_topics", lambda _: ["t"])
    monkeypatch.setattr(rights, "may_write_transactions", lambda *_: True)
    monkeypatch.setattr(rights, "may_read_group", lambda _, group, __: held or group != "shown")
    return list(rights.judge_rights(context))


def test_right_on_the_group_that_shows_the_position_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    _, found, _ = findings(monkeypatch, held=False, commitOffsetsToGroup="shown")
    assert found.status is FindingStatus.WARNING
    assert "Offsets to a group: missing READ on consumer group 'shown'" in found.text
    assert "--group shown" in found.remedy
    _, found, _ = findings(monkeypatch, held=True, commitOffsetsToGroup="shown")
    assert found.status is FindingStatus.OK
    assert "all rights are there (group 'shown')" in found.text


def test_no_group_is_judged_if_none_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not any("group" in found.text for found in findings(monkeypatch, held=False))
