"""The example that sees a query from all sides: events at a collector, linked spans, state and lag on the screen."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, produce
from kit.lineage_collector import lineage_collector
from kit.pointers import REPO
from kit.span_files import kept_spans, variables_of_exporter

pytestmark = pytest.mark.full("Examples")

_PRODUCER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


def test_one_program_shows_lineage_traces_state_and_lag(
    bootstrap_servers: str, make_topic: TopicMaker, tmp_path: Path
) -> None:
    source, target = make_topic(), make_topic()
    headers: list[tuple[str, bytes | None]] = [("traceparent", f"00-{'-'.join(_PRODUCER)}-01".encode())]
    produce(bootstrap_servers, source, [Record(b"k%d" % (n % 3), b"v", headers=headers) for n in range(9)])
    with lineage_collector() as collector:
        done = subprocess.run(
            [
                sys.executable, str(REPO / "examples" / "see_through.py"), bootstrap_servers, source, target,
                str(tmp_path / "checkpoint"), "10",
            ],
            env={
                **os.environ, **variables_of_exporter(tmp_path), "SPARK_LOCAL_IP": "127.0.0.1",
                "OPENLINEAGE_URL": collector.url,
            },
            capture_output=True, text=True, timeout=290, check=False, cwd=tmp_path,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-4000:]
    # The collector accepts events that fit the published schemas.
    assert collector.refused == []
    assert collector.states()[0] == "START"
    assert collector.states()[-1] == "COMPLETE"
    ended = collector.events[-1]
    assert [each["name"] for each in ended["inputs"] + ended["outputs"]] == [source, target]
    assert _PRODUCER in [link for span in kept_spans(tmp_path) for link in span.links]
    # The windows are open, and nothing is left to read.
    assert "stateStoreSave: 3 rows, 3 timers" in done.stdout
    assert f"{source}: 0 records behind" in done.stdout
    assert f"{source}-0 holds windows open" in done.stdout
