"""The programs of docs/guides/notebook.md, which need no Spark."""

from __future__ import annotations

import re
from typing import Any

import pytest

from kit.fixtures.broker import TopicMaker
from kit.independent_client import Record, produce
from kit.pointers import REPO

_BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)


def test_guide_looks_into_a_topic(
    bootstrap_servers: str, make_topic: TopicMaker, capsys: pytest.CaptureFixture[str]
) -> None:
    topic = make_topic(2)
    value = b'{"id":%d,"city":"Bern","amount":1.5}'
    produce(bootstrap_servers, topic, [Record(None, value % n, n % 2) for n in range(2_010)])
    page = (REPO / "docs" / "guides" / "notebook.md").read_text()
    names: dict[str, Any] = {}
    for block in _BLOCK.findall(page):
        own = block.replace("localhost:9092", bootstrap_servers)
        program = own.replace('"subscribe": "orders"', f'"subscribe": "{topic}"')
        exec(compile(program, "notebook.md", "exec"), names)  # noqa: S102 - the page's own programs
    shown = capsys.readouterr().out
    assert names["table"].num_rows == names["names"].shape[0] == names["frame"].height == 2_010
    assert "Bern" in shown
    assert "3015.0" in shown
    # Offsets 1,001 to 1,004 of partition 0.
    assert shown.rstrip().endswith("4")
