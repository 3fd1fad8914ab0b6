from __future__ import annotations

import errno
import os
import pickle
import stat
import threading
import time
import uuid
from pathlib import Path

import pytest

from pyspark_kafka.checkpoint import file_location
from pyspark_kafka.checkpoint import files as checkpoint_files
from pyspark_kafka.checkpoint.files import CheckpointFiles
from pyspark_kafka.errors import CheckpointError


@pytest.fixture(params=["local", "remote"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> CheckpointFiles:
    """Files on the local disk, and on a file system of pyarrow's that this process keeps in memory."""
    if request.param == "local":
        return CheckpointFiles(str(tmp_path / "checkpoint"))
    return CheckpointFiles(f"mock:///{uuid.uuid4().hex}")


def everything(location: Path) -> list[str]:
    return sorted(str(path.relative_to(location)) for path in location.rglob("*") if path.is_file())


def test_a_file_that_is_not_there_is_none(files: CheckpointFiles) -> None:
    assert files.read("offsets/0") is None


def test_a_created_file_reads_back_and_its_directories_are_made(files: CheckpointFiles) -> None:
    assert files.create("sources/0/0", b"\0v1\n")
    assert files.read("sources/0/0") == b"\0v1\n"


def test_create_leaves_a_file_that_is_there_as_it_is(files: CheckpointFiles) -> None:
    files.create("offsets/0", b"first")
    assert not files.create("offsets/0", b"second")
    assert files.read("offsets/0") == b"first"


def test_replace_writes_a_new_file_and_over_a_former_one(files: CheckpointFiles) -> None:
    files.replace("state", b"first, and longer")
    files.replace("state", b"second")
    assert files.read("state") == b"second"


def test_list_gives_files_sorted_without_hidden_ones_and_directories(files: CheckpointFiles) -> None:
    for name in ("offsets/10", "offsets/2", "offsets/.2.crc", "offsets/deeper/1", "metadata"):
        files.create(name, b"")
    assert files.list("offsets") == ["10", "2"]
    assert files.list() == ["metadata"]
    assert files.list("commits") == []


def test_delete_takes_the_checksum_along_and_may_be_repeated(files: CheckpointFiles) -> None:
    files.create("commits/0", b"v1\n{}")
    files.create("commits/.0.crc", b"crc")
    files.delete("commits/0")
    assert files.read("commits/0") is None
    assert files.read("commits/.0.crc") is None
    files.delete("commits/0")
    files.delete("nowhere/0")


@pytest.mark.parametrize("write", ["create", "replace"])
def test_a_write_takes_away_the_checksum_of_a_former_file(files: CheckpointFiles, write: str) -> None:
    files.create("offsets/.7.crc", b"of a file that is gone")
    getattr(files, write)("offsets/7", b"new")
    assert files.read("offsets/.7.crc") is None


def test_a_create_that_finds_the_file_there_leaves_its_checksum(files: CheckpointFiles) -> None:
    files.create("offsets/7", b"Spark's")
    files.create("offsets/.7.crc", b"its checksum")
    assert not files.create("offsets/7", b"ours")
    assert files.read("offsets/.7.crc") == b"its checksum"


def test_no_temporary_file_stays(tmp_path: Path) -> None:
    files = CheckpointFiles(str(tmp_path))
    files.create("offsets/0", b"a")
    files.create("offsets/0", b"b")
    files.replace("offsets/0", b"c")
    assert everything(tmp_path) == ["offsets/0"]


def test_no_temporary_file_stays_after_a_failed_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(CheckpointError, match="No space left on device"):
        CheckpointFiles(str(tmp_path)).create("offsets/0", b"a")
    assert everything(tmp_path) == []


def test_one_of_many_creators_of_a_local_file_wins(tmp_path: Path) -> None:
    together = threading.Barrier(8)
    won: list[int] = []

    def create(number: int) -> None:
        files = CheckpointFiles(str(tmp_path))
        for round_ in range(25):
            together.wait()
            if files.create(f"sources/{round_}", b"%d" % number):
                won.append(round_)
                assert files.read(f"sources/{round_}") == b"%d" % number

    threads = [threading.Thread(target=create, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(won) == list(range(25))


def test_calls_that_wait_for_the_disk_are_made_eight_at_a_time(tmp_path: Path) -> None:
    together = threading.Barrier(8, timeout=10)
    CheckpointFiles(str(tmp_path)).side_by_side(*[together.wait] * 8, durable=True)
    assert not together.broken


def test_other_calls_of_a_local_place_are_made_one_by_one(tmp_path: Path) -> None:
    threads: list[threading.Thread] = []
    CheckpointFiles(str(tmp_path)).side_by_side(*[lambda: threads.append(threading.current_thread())] * 3)
    assert threads == [threading.current_thread()] * 3


def test_a_file_system_without_hard_links_is_written_to_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOTSUP, "Operation not supported")

    monkeypatch.setattr(os, "link", refuse)
    files = CheckpointFiles(str(tmp_path))
    assert files.create("offsets/0", b"a")
    assert not files.create("offsets/0", b"b")
    assert files.read("offsets/0") == b"a"
    assert everything(tmp_path) == ["offsets/0"]


def test_link_whose_answer_was_lost_counts_as_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = os.link

    def repeated(source: str, target: str) -> None:
        link(source, target)
        raise FileExistsError(target)

    monkeypatch.setattr(os, "link", repeated)
    assert CheckpointFiles(str(tmp_path)).create("offsets/0", b"ours")


def test_files_are_made_with_the_rights_that_the_umask_leaves(tmp_path: Path) -> None:
    CheckpointFiles(str(tmp_path)).create("0", b"")
    plain = tmp_path / "plain"
    plain.touch()
    assert stat.S_IMODE((tmp_path / "0").stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)


def test_a_file_over_the_bound_is_refused(files: CheckpointFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint_files, "MAX_FILE_BYTES", 10)
    files.create("whole", bytes(10))
    files.create("larger", bytes(11))
    assert files.read("whole") == bytes(10)
    with pytest.raises(
        CheckpointError, match=r"CHECKPOINT_FILE_TOO_LARGE\] File larger of checkpoint .* more than 10 "
    ):
        files.read("larger")


@pytest.mark.parametrize("name", ["", "/etc/passwd", "../above", "a/../b", "a//b", "a/.", "a/"])
def test_a_name_that_leads_elsewhere_is_refused(files: CheckpointFiles, name: str) -> None:
    for use in (files.read, files.delete, files.list if name else files.read):
        with pytest.raises(CheckpointError, match="CHECKPOINT_NAME_INVALID"):
            use(name)
    with pytest.raises(CheckpointError, match="CHECKPOINT_NAME_INVALID"):
        files.create(name, b"")


def test_a_directory_in_the_place_of_a_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "offsets").mkdir()
    files = CheckpointFiles(str(tmp_path))
    with pytest.raises(CheckpointError) as caught:
        files.read("offsets")
    assert str(caught.value).startswith(f"[CHECKPOINT_IO] Cannot read offsets of checkpoint {tmp_path}: IsADirectory")
    with pytest.raises(CheckpointError, match="Cannot write offsets of checkpoint"):
        files.replace("offsets", b"")
    assert everything(tmp_path) == []


@pytest.mark.parametrize("form", ["{}", "file:{}", "file://{}", "file://localhost{}", "FILE:{}"])
def test_a_local_place_may_be_given_as_path_or_uri(form: str, tmp_path: Path) -> None:
    place = tmp_path / "a b%20c"
    files = CheckpointFiles(form.format(place))
    files.create("0", b"x")
    # As Hadoop does, and so Spark finds the same file: nothing in it is decoded.
    assert (place / "0").read_bytes() == b"x"
    assert files == CheckpointFiles(str(place))


def test_a_relative_path_stays_the_place_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    files = CheckpointFiles("checkpoint")
    monkeypatch.chdir("/")
    files.create("0", b"x")
    assert everything(tmp_path) == ["checkpoint/0"]


def test_files_pickle_as_their_location(files: CheckpointFiles) -> None:
    files.create("0", b"x")
    again = pickle.loads(pickle.dumps(files))  # noqa: S301 - our own bytes
    assert again == files
    assert again.read("0") == b"x"


@pytest.mark.parametrize("location", ["", " "])
def test_an_empty_location_is_refused(location: str) -> None:
    with pytest.raises(CheckpointError, match=r"location of a checkpoint is empty\. Hint: Set it to a path or a URI\."):
        CheckpointFiles(location)


def test_an_unknown_kind_of_location_is_refused_with_a_hint() -> None:
    with pytest.raises(CheckpointError) as caught:
        CheckpointFiles("gopher://host/x").read("0")
    assert str(caught.value).startswith(
        "[CHECKPOINT_LOCATION_INVALID] The checkpoint location gopher://host/x cannot be opened: Unrecognized"
    )
    assert "pyarrow.fs.FileSystem.from_uri" in str(caught.value)


def test_secrets_of_a_location_are_shown_nowhere() -> None:
    files = CheckpointFiles("gopher://me:PLANTED@host/x?key=PLANTED")
    with pytest.raises(CheckpointError) as caught:
        files.read("0")
    assert caught.value.__cause__ is None
    for text in (repr(files), str(caught.value), repr(caught.value.parameters)):
        assert "PLANTED" not in text
        assert "gopher://…@host/x" in text or "Cannot" in text


@pytest.mark.parametrize(
    ("location", "shown"),
    [
        ("s3://AKIA:ab/cdPLANTED@bucket/x", "s3://…@bucket/x"),
        ("s3a://AKIA:12/PLANTED@bucket/x", "s3a://…@bucket/x"),
        ("s3://AKIA:PLANTED@bucket/a:b", "s3://…@bucket/a:b"),
        ("s3://me:a@PLANTED/c@bucket/x", "s3://…@bucket/x"),
    ],
)
def test_secret_with_a_slash_is_shown_nowhere(location: str, shown: str) -> None:
    files = CheckpointFiles(location)
    assert files.shown == shown
    if "/c" in location.partition("@")[0]:
        with pytest.raises(CheckpointError) as caught:
            files.read("0")
        assert "PLANTED" not in str(caught.value)


@pytest.mark.parametrize(
    "location",
    [
        "hdfs://name:8020/user/me@corp.com/x",
        "s3://bucket/a:b/me@corp.com",
        "hdfs://name:8020/a:b@c",
        "viewfs://name:8020/a@b",
        "webhdfs://name:9870/u/a@b/c",
    ],
)
def test_location_without_a_secret_is_shown_whole(location: str) -> None:
    assert CheckpointFiles(location).shown == location


def test_a_container_before_an_at_sign_is_no_secret() -> None:
    assert CheckpointFiles("abfss://data@account.dfs.core.windows.net/x").shown.startswith("abfss://data@account")


@pytest.mark.parametrize("scheme", ["s3", "s3a", "s3n", "S3A"])
def test_hadoops_names_of_s3_are_known(scheme: str) -> None:
    assert file_location._for_arrow(f"{scheme}://bucket/a:b").startswith("s3://bucket/a:b")


def test_a_file_is_on_disk_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []

    def note(name: str) -> None:
        real = getattr(os, name)

        def call(*args: object) -> object:
            done.append(name)
            return real(*args)

        monkeypatch.setattr(os, name, call)

    for name in ("fsync", "link", "replace"):
        note(name)
    files = CheckpointFiles(str(tmp_path))
    files.create("0", b"x")
    assert done == ["fsync", "link", "fsync"]
    files.replace("0", b"y")
    assert done[3:] == ["fsync", "replace", "fsync"]


def test_scan_tells_files_hidden_ones_and_directories_apart(files: CheckpointFiles) -> None:
    for name in ("a", ".a.crc", "b", "c/d"):
        files.create(name, b"")
    found = files.scan()
    assert (sorted(found.files), found.hidden, found.directories) == (["a", "b"], (".a.crc",), ("c",))
    assert found.complete
    assert files.scan("missing").files == ()
    assert files.scan("a").files == ()


def test_scan_ends_at_its_bound_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        (tmp_path / str(number)).write_text("")
    monkeypatch.setattr("pyspark_kafka.checkpoint.files.MAX_NAMES", 3)
    found = CheckpointFiles(str(tmp_path)).scan()
    assert (len(found.files), found.complete) == (3, False)


def test_status_of_a_file_has_its_size_and_time(files: CheckpointFiles) -> None:
    files.create("a", b"12345")
    status = files.status("a")
    assert status is not None
    assert status.size == 5
    assert status.modified_ms is not None
    assert abs(status.modified_ms - time.time() * 1000) < 600_000
    assert files.status("b") is None
    assert files.status("a/b") is None


def test_copy_has_the_bytes_of_another_location_and_no_checksum_of_a_former_file(
    files: CheckpointFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint_files, "_COPIED_AT_ONCE", 7)
    other = CheckpointFiles(str(tmp_path / "other"))
    data = bytes(range(256))
    other.replace("state/0/1.delta", data)
    files.replace("state/0/1.delta", b"former")
    files.replace("state/0/.1.delta.crc", b"of the former")
    assert files.copy_from(other, "state/0/1.delta")
    assert files.read("state/0/1.delta") == data
    assert files.scan("state/0").hidden == ()
    # And the other way round.
    assert other.copy_from(files, "state/0/1.delta")


def test_copy_of_a_file_that_is_not_there_is_false_and_changes_nothing(files: CheckpointFiles, tmp_path: Path) -> None:
    files.replace("metadata", b"kept")
    assert not files.copy_from(CheckpointFiles(str(tmp_path / "other")), "metadata")
    assert files.read("metadata") == b"kept"
    assert files.scan().hidden == ()


def test_copy_that_fails_leaves_the_former_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files, other = CheckpointFiles(str(tmp_path / "checkpoint")), CheckpointFiles(str(tmp_path / "other"))
    files.replace("metadata", b"kept")
    other.replace("metadata", b"other")

    def full(descriptor: int) -> None:  # noqa: ARG001
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(CheckpointError, match=r"Cannot copy metadata of checkpoint .* OSError") as caught:
        files.copy_from(other, "metadata")
    assert caught.value.condition == "CHECKPOINT_IO"
    assert everything(tmp_path / "checkpoint") == ["metadata"]
    assert files.read("metadata") == b"kept"


@pytest.mark.parametrize(
    ("number", "retriable"),
    [(errno.EIO, True), (errno.ENOSPC, True), (errno.ESTALE, True), (errno.EACCES, False), (errno.EROFS, False)],
)
def test_failure_of_a_file_may_pass_unless_a_right_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, retriable: bool
) -> None:
    def fail(descriptor: int) -> None:  # noqa: ARG001
        raise OSError(number, os.strerror(number))

    files = CheckpointFiles(str(tmp_path))
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(CheckpointError, match="CHECKPOINT_IO") as caught:
        files.create("offsets/1", b"x")
    assert caught.value.retriable is retriable
