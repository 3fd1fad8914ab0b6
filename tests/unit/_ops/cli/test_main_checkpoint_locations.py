"""Users pass the checkpointLocation of their program to commands: it must mean the same place there."""

from __future__ import annotations

from pathlib import Path

import pytest

from kit.checkpoint_files import write_checkpoint
from kit.programs.cli import invoke

PLACE = "/checkpoints/query"
QUALIFIED = "nowhere://nn/checkpoints/query"


@pytest.fixture(autouse=True)
def _default_file_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = (
        "<configuration><property><name>fs.defaultFS</name><value>nowhere://nn</value></property></configuration>"
    )
    (tmp_path / "core-site.xml").write_text(settings)
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))


@pytest.mark.parametrize(
    "arguments",
    [
        ["checkpoint", "show", PLACE],
        ["checkpoint", "explain", PLACE],
        ["checkpoint", "verify", PLACE],
        ["checkpoint", "diff", PLACE, PLACE],
        ["checkpoint", "fork", PLACE, "/other", "--batch", "0"],
        ["checkpoint", "rewind", PLACE, "--batch", "0"],
        ["checkpoint", "rewind", "file:///other", "--restore", PLACE],
        ["report", PLACE, "--html", "report.html"],
        ["lag", "--checkpoint", PLACE, "-b", "127.0.0.1:1"],
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_location_without_a_scheme_is_on_the_default_file_system(arguments: list[str]) -> None:
    done = invoke(*arguments)
    assert done.exit_code == 2
    assert f"checkpoint location {QUALIFIED} cannot be opened" in done.output


def test_local_checkpoint_is_named_by_its_scheme(tmp_path: Path) -> None:
    place = write_checkpoint(tmp_path / "query", [{"t": {"0": 5}}])
    assert invoke("checkpoint", "explain", place.as_uri()).exit_code == 0


def test_fork_is_written_to_the_default_file_system(tmp_path: Path) -> None:
    place = write_checkpoint(tmp_path / "query", [{"t": {"0": 5}}])
    done = invoke("checkpoint", "fork", place.as_uri(), PLACE, "--batch", "0", "--yes")
    assert done.exit_code == 2
    assert f"checkpoint location {QUALIFIED} cannot be opened" in done.output
