"""The example of docs/records.md, run as it stands over what brokers handed out; and what the page says of files."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from pyspark_kafka.records import COLUMN_NAMES, decode

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "records.md").read_text()
FOLDER = ROOT / "tests" / "golden" / "batches"


@pytest.mark.parametrize("name", ["java-4.3.0-codec-gzip", "kafka-python-3.0.12-codec-none"])
def test_the_example_runs_as_it_stands(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    described = json.loads((FOLDER / f"{name}.json").read_text())
    shutil.copy(FOLDER / f"{name}.bin", tmp_path / "00000000000000000000.log")
    monkeypatch.chdir(tmp_path)
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(compile(example, "docs/records.md", "exec"), {})  # noqa: S102 - the page's own text
    first, *rows = capsys.readouterr().out.splitlines()
    count = len(described["records"])
    assert first == f"{count} records; the next offset is {described['high_watermark']}"
    assert [int(row.split(" ")[0]) for row in rows] == list(range(10, 20))
    original, copy = (
        decode((tmp_path / name).read_bytes(), start_offset=0).batch
        for name in ("00000000000000000000.log", "copy.log")
    )
    # Also the kind of timestamp: the fixtures have the producer's, which is what encode writes.
    assert copy.equals(original)


def test_the_page_names_every_column() -> None:
    assert re.findall(r"^\| `(\w+)` \| `", PAGE, re.MULTILINE) == list(COLUMN_NAMES)
