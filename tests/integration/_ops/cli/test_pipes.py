"""Commands whose output goes into a pipe that nobody reads, or that is read for a line only."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from kit.checkpoint_files import write_checkpoint
from pyspark_kafka._ops.cli.common.pipes import is_left, outliving_readers
from pyspark_kafka._ops.operations.checkpoints.query_checkpoint import read_checkpoint

_PROGRAM = (sys.executable, "-m", "pyspark_kafka")
ENDS = [{"t": {"0": 5}}, {"t": {"0": 9}}]


def ended(*arguments: str, errors_too: bool = False) -> tuple[int, str]:
    """Run the program with a standard output that nobody reads; return its exit status and its standard error."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [*_PROGRAM, *arguments],
            stdout=writer,
            stderr=writer if errors_too else subprocess.PIPE,
            timeout=120,
            check=False,
        )
    finally:
        os.close(writer)
    return done.returncode, (done.stderr or b"").decode()


@pytest.fixture
def healthy(tmp_path: Path) -> str:
    return str(write_checkpoint(tmp_path / "healthy", ENDS))


@pytest.fixture
def faulty(tmp_path: Path) -> str:
    place = write_checkpoint(tmp_path / "faulty", ENDS)
    (place / "offsets" / "1").write_bytes(b"")
    return str(place)


def test_program_that_says_what_it_can_do_ends_well_without_a_reader() -> None:
    for arguments in (["--help"], ["checkpoint", "--help"], ["--version"]):
        assert ended(*arguments) == (0, "")


@pytest.mark.parametrize("json_too", [(), ("--json",)])
def test_commands_keep_their_status_without_a_reader(
    tmp_path: Path, healthy: str, faulty: str, json_too: tuple[str, ...]
) -> None:
    other = str(write_checkpoint(tmp_path / "other", ENDS[:1]))
    assert ended("checkpoint", "show", healthy, "--all", *json_too) == (0, "")
    assert ended("checkpoint", "explain", healthy, *json_too) == (0, "")
    assert ended("checkpoint", "verify", healthy, *json_too)[0] == 0
    assert ended("checkpoint", "verify", faulty, *json_too)[0] == 1
    assert ended("checkpoint", "diff", healthy, healthy, *json_too) == (0, "")
    assert ended("checkpoint", "diff", healthy, other, *json_too) == (1, "")
    assert ended("checkpoint", "diff", healthy, faulty, *json_too)[0] == 3
    status, told = ended("checkpoint", "show", str(tmp_path / "nothing"), *json_too)
    assert status == 2
    assert "nothing" in told


def test_statuses_stay_if_nobody_reads_standard_error_either(tmp_path: Path, healthy: str, faulty: str) -> None:
    assert ended("checkpoint", "verify", healthy, errors_too=True)[0] == 0
    assert ended("checkpoint", "verify", faulty, errors_too=True)[0] == 1
    assert ended("checkpoint", "diff", healthy, faulty, errors_too=True)[0] == 3
    assert ended("checkpoint", "show", str(tmp_path / "nothing"), errors_too=True)[0] == 2
    assert ended("checkpoint", "show", "--no-such-option", errors_too=True)[0] == 2


def test_rewind_is_carried_out_though_nobody_reads(healthy: str) -> None:
    assert ended("checkpoint", "rewind", healthy, "--batch", "0", "--yes", "--force", errors_too=True)[0] == 0
    position = read_checkpoint(healthy).position()
    assert [offset.json() for offset in position.values()] == ['{"t":{"0":5}}']


def test_output_that_is_longer_than_a_pipe_ends_well_after_its_first_line(tmp_path: Path) -> None:
    place = write_checkpoint(tmp_path / "wide", [{"t": {str(each): 1 for each in range(5_000)}}])
    for json_too in ([], ["--json"]):
        shown = subprocess.Popen(
            [*_PROGRAM, "checkpoint", "show", str(place), "--all", *json_too],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert shown.stdout is not None
        assert shown.stderr is not None
        assert shown.stdout.readline()
        shown.stdout.close()
        assert shown.wait(120) == 0
        assert shown.stderr.read() == b""
        shown.stderr.close()


def test_shell_gets_the_status_of_a_finding_through_head(healthy: str, faulty: str) -> None:
    for place, status in ((healthy, 0), (faulty, 1)):
        script = 'set -o pipefail; "$@" 2>/dev/null | head -1'
        given = ["bash", "-c", script, "bash", *_PROGRAM, "checkpoint", "verify", place]
        assert subprocess.run(given, capture_output=True, timeout=120, check=False).returncode == status


def said(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def test_reader_that_leaves_is_noticed_and_what_is_read_is_whole() -> None:
    reader, writer = os.pipe()
    with open(writer, "w", encoding="utf-8") as file, redirect_stdout(file):  # noqa: PTH123 - a descriptor
        with outliving_readers():
            said("é")
            assert os.read(reader, 100).decode() == "é\n"
            assert not is_left()
            os.close(reader)
            said("dropped")
            assert is_left()
            sys.stdout.write("dropped at the end of the block")
        assert sys.stdout is file


def test_output_without_a_descriptor_stays_what_it_is() -> None:
    for each in (io.StringIO(), io.TextIOWrapper(io.BytesIO())):
        with redirect_stdout(each), outliving_readers():
            assert sys.stdout is each
            assert not is_left()
