"""Checkpoints that are hostile, or that may not be read: what is still shown, and with which status."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kit.checkpoint_files import write_checkpoint
from kit.programs.cli import invoke
from pyspark_kafka._ops.operations.checkpoints.query_checkpoint import read_checkpoint
from pyspark_kafka._ops.operations.checkpoints.summary import read_summary
from pyspark_kafka._ops.operations.checkpoints.verify.file_checks import check_files
from pyspark_kafka._ops.operations.checkpoints.verify.findings import Findings
from pyspark_kafka.checkpoint import CheckpointFiles

ENDS = [{"t": {"0": 5}}, {"t": {"0": 9}}]
FILES = [
    "metadata",
    "offsets/0",
    "offsets/1",
    "offsets/.1.crc",
    "commits/0",
    "commits/1",
    "sources/0/0",
    "sources/0/topic-ids",
    "sources/0/reader-schemas",
    "sink/schemas",
    "continuous/owner",
    "continuous/messages/1",
    "continuous/transactions",
    "state/0/_metadata/metadata",
]
_NUMBERS = st.one_of(st.integers(), st.floats(), st.just(10**400))
_JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), _NUMBERS, st.text(max_size=8)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.one_of(
                st.text(max_size=4),
                st.sampled_from(["t", "0", "00", "conf", "batchTimestampMs", "batchWatermarkMs", "id", "v", "topics"]),
            ),
            inner,
            max_size=3,
        ),
    ),
    max_leaves=8,
)


def _text(value: object) -> bytes:
    # Numbers of any length, as a hostile file may have them.
    return json.dumps(value, default=str).encode(errors="replace") if value != 10**400 else b"1" + b"0" * 9000


_CONTENT = st.one_of(
    st.binary(max_size=60),
    _JSON.map(_text),
    st.tuples(_JSON, _JSON).map(lambda pair: b"v1\n" + _text(pair[0]) + b"\n" + _text(pair[1])),
    st.tuples(_JSON, _JSON).map(lambda pair: b"v2\n" + _text(pair[0]) + b"\n0:" + _text(pair[1])),
    _JSON.map(lambda value: b"\0v1\n" + _text(value)),
    st.sampled_from([b"v1\n" + b"[" * 100_000, b"v1\n{}\n" + b'{"a":' * 50_000, b"v99999999\n{}\n{}"]),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.sampled_from(FILES), content=_CONTENT)
def test_file_of_any_content_is_read_or_named(tmp_path: Path, name: str, content: bytes) -> None:
    for path in [path for path in tmp_path.rglob("*") if path.is_file()]:
        path.unlink()
    write_checkpoint(tmp_path, ENDS, initial={"t": {"0": 2}})
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_bytes(content)
    checkpoint = read_checkpoint(str(tmp_path))
    read_summary(checkpoint, max_batches=None)
    check_files(checkpoint, Findings())


def test_file_that_is_too_large_is_not_read_and_status_is_3(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, ENDS)
    with (tmp_path / "offsets" / "1").open("r+b") as file:
        file.truncate(65 * 1024 * 1024)
    for command in ("explain", "show", "verify"):
        result = invoke("checkpoint", command, str(tmp_path))
        assert result.exit_code == 3
        assert "offsets/1 of checkpoint" in result.stderr
        assert "has more than 67,108,864 bytes; it was not read" in result.stderr


def test_listing_that_is_refused_is_status_2_and_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_checkpoint(tmp_path, ENDS)

    def refused(_: CheckpointFiles, directory: str) -> object:
        raise PermissionError(13, "Permission denied", directory)

    monkeypatch.setattr(CheckpointFiles, "_entries", refused)
    for command in ("explain", "show", "verify"):
        result = invoke("checkpoint", command, str(tmp_path))
        assert result.exit_code == 2
        assert result.stderr.startswith("[CHECKPOINT_IO] Cannot list . of checkpoint")
        assert "Grant this process the permission" in result.stderr


@pytest.mark.parametrize("refused", ["offsets", "sources", "state", "state/0"])
def test_directory_that_may_not_be_listed_is_said_to_be_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: str
) -> None:
    write_checkpoint(tmp_path, ENDS)
    (tmp_path / "state" / "0" / "0").mkdir(parents=True)
    entries = CheckpointFiles._entries

    def some(files: CheckpointFiles, directory: str) -> object:
        if directory == refused:
            raise PermissionError(13, "Permission denied", directory)
        return entries(files, directory)

    monkeypatch.setattr(CheckpointFiles, "_entries", some)
    for command in ("explain", "show", "verify"):
        result = invoke("checkpoint", command, str(tmp_path))
        assert result.exit_code == (2 if refused == "offsets" else 3)
        assert f"Cannot list {refused} of checkpoint" in result.stderr
