from __future__ import annotations

import struct
import zlib
from pathlib import Path

import pytest

from kit.checkpoint_files import offsets_text, write_checkpoint
from pyspark_kafka._ops.operations.checkpoints.query_checkpoint import read_checkpoint
from pyspark_kafka._ops.operations.checkpoints.unfinished import unfinished_note
from pyspark_kafka._ops.operations.checkpoints.verify.file_checks import check_files
from pyspark_kafka._ops.operations.checkpoints.verify.findings import Findings
from pyspark_kafka.checkpoint import CheckpointFiles
from pyspark_kafka.checkpoint.continuous_files import MESSAGES, OWNER, VERSIONS, PreparedEpoch, owner_bytes
from pyspark_kafka.checkpoint.topic_ids import TopicIdentities

ENDS = [{"t": {"0": 5}}, {"t": {"0": 9}}, {"t": {"0": 12}}]


def found_in(location: Path) -> Findings:
    findings = Findings()
    check_files(read_checkpoint(str(location)), findings)
    return findings


def codes(location: Path) -> list[tuple[str, str, str]]:
    return [(each.severity.value, each.code, each.where) for each in found_in(location)]


def add_checksums(location: Path) -> None:
    for path in [path for path in location.rglob("*") if path.is_file() and not path.name.startswith(".")]:
        data = path.read_bytes()
        sums = [zlib.crc32(data[start : start + 512]) for start in range(0, len(data), 512)]
        path.with_name(f".{path.name}.crc").write_bytes(b"crc\0" + struct.pack(f">I{len(sums)}I", 512, *sums))


@pytest.fixture
def location(tmp_path: Path) -> Path:
    write_checkpoint(tmp_path, ENDS, initial={"t": {"0": 2}})
    (tmp_path / "sources" / "0" / "topic-ids").write_bytes(TopicIdentities({"t": "id"}).to_bytes())
    add_checksums(tmp_path)
    return tmp_path


def test_checkpoint_with_checksums_has_nothing_wrong(location: Path) -> None:
    assert codes(location) == []


def test_file_that_was_changed_without_its_checksum_is_a_fault(location: Path) -> None:
    (location / "metadata").write_text((location / "metadata").read_text().replace("6a1c", "6a1d"))
    (finding,) = found_in(location)
    assert (finding.severity.value, finding.code, finding.where) == ("fault", "checksum", "metadata")
    assert (
        finding.advice
        == "If the file was changed on purpose, remove .metadata.crc; otherwise restore both from a copy."
    )


@pytest.mark.parametrize(("max_batches", "read"), [(None, {"0", "1", "2"}), (2, {"1", "2"}), (9, {"0", "1", "2"})])
def test_checksums_are_compared_for_the_batches_that_are_asked_for(
    location: Path, monkeypatch: pytest.MonkeyPatch, max_batches: int | None, read: set[str]
) -> None:
    asked: set[str] = set()
    read_file = CheckpointFiles.read

    def noted(files: CheckpointFiles, name: str) -> bytes | None:
        asked.add(name)
        return read_file(files, name)

    monkeypatch.setattr(CheckpointFiles, "read", noted)
    findings = Findings()
    check_files(read_checkpoint(str(location)), findings, max_batches=max_batches)
    assert list(findings) == []
    for log in ("offsets", "commits"):
        assert {name for name in asked if name.startswith(f"{log}/")} == {
            f"{log}/{name}" for number in read for name in (number, f".{number}.crc")
        }
    assert "sources/0/.topic-ids.crc" in asked


def test_old_file_that_does_not_match_is_a_warning(location: Path) -> None:
    (location / "commits" / "0").write_text('v1\n{"nextBatchWatermarkMs":7}')
    assert codes(location) == [("warning", "checksum", "commits/0")]


def test_checksum_without_its_file_is_a_warning(location: Path) -> None:
    (location / "offsets" / ".3.crc").write_bytes(b"crc\0\0\0\2\0")
    assert codes(location) == [("warning", "checksum-alone", "offsets/.3.crc")]


@pytest.mark.parametrize("suffix", ["0123456789abcdef0123456789abcdef", "1d4f4a53-43d3-4a9c-8b38-5ae2b2c1f0de"])
def test_temporary_file_is_a_note_and_beside_its_file_a_warning(location: Path, suffix: str) -> None:
    (location / "offsets" / f".3.{suffix}.tmp").write_bytes(b"")
    (location / "offsets" / f".2.{suffix}.tmp").write_bytes(b"")
    assert codes(location) == [
        ("warning", "two-writers", f"offsets/.2.{suffix}.tmp"),
        ("note", "temporary", f"offsets/.3.{suffix}.tmp"),
    ]


def test_checksum_of_a_temporary_file_adds_nothing(location: Path) -> None:
    (location / "offsets" / "..3.x.tmp.crc").write_bytes(b"")
    assert codes(location) == []


def test_files_that_are_no_batches_are_a_note(location: Path) -> None:
    (location / "commits" / "notes.txt").write_text("of somebody")
    assert codes(location) == [("note", "other-files", "commits")]


def test_missing_and_damaged_metadata_are_faults(location: Path) -> None:
    (location / ".metadata.crc").unlink()
    (location / "metadata").write_text('{"id":')
    assert codes(location) == [("fault", "damaged", "metadata")]
    (location / "metadata").unlink()
    assert codes(location) == [("fault", "no-query-id", "metadata")]


def test_note_of_a_rewind_that_was_not_finished_is_a_fault_and_names_the_backup(location: Path) -> None:
    (location / ".metadata.crc").unlink()
    (location / "metadata").write_bytes(unfinished_note("x", "backup"))
    (finding,) = found_in(location)
    assert (finding.severity.value, finding.code, finding.where) == ("fault", "unfinished-rewind", "metadata")
    assert finding.text == (
        f"Checkpoint {location} is not whole: a fork or a rewind of it was not finished. No query starts here."
    )
    assert finding.advice == (
        f"Run `pyspark-kafka checkpoint rewind {location} --restore {location.parent / 'backup'}`."
    )


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("sources/0/topic-ids", b"v1\n{", "damaged"),
        ("sources/0/topic-ids", b"v2\n{}", "newer-version"),
        ("sources/0/reader-schemas", b"", "damaged"),
        ("sink/schemas", b"{}", "damaged"),
        ("continuous/transactions", b'{"v":1}', "damaged"),
    ],
)
def test_files_that_a_restart_reads_are_faults_if_damaged(location: Path, name: str, content: bytes, code: str) -> None:
    for crc in location.rglob(".topic-ids.crc"):
        crc.unlink()
    (location / name).parent.mkdir(exist_ok=True)
    (location / name).write_bytes(content)
    assert codes(location) == [("fault", code, name)]


@pytest.fixture
def continuous(tmp_path: Path) -> Path:
    """Epochs 0 and 1 are finished, and the messages of epoch 2 are kept."""
    write_checkpoint(tmp_path, ENDS, finished=2)
    for number, end in enumerate(ENDS):
        (tmp_path / "offsets" / str(number)).write_text(offsets_text(number, [end], conf={}))
    files = CheckpointFiles(str(tmp_path))
    files.replace(OWNER, owner_bytes("start-1"))
    files.replace(f"{MESSAGES}/2", PreparedEpoch("{}", ("m",)).to_bytes())
    for epoch in (0, 1):
        files.replace(f"{VERSIONS}/{epoch}", b'{"v":1,"schemas":[],"heads":{}}')
    return tmp_path


def test_continuous_query_with_its_messages_and_versions_has_nothing_wrong(continuous: Path) -> None:
    assert codes(continuous) == []


@pytest.mark.parametrize("name", [f"{MESSAGES}/2", f"{VERSIONS}/1"])
@pytest.mark.parametrize("content", [b"", b'{"v":1,', b"[]", b'{"v":1}'])
def test_files_of_epochs_that_a_restart_reads_are_faults_if_damaged(
    continuous: Path, name: str, content: bytes
) -> None:
    (continuous / name).write_bytes(content)
    assert codes(continuous) == [("fault", "damaged", name)]


def test_versions_of_an_earlier_epoch_are_not_read(continuous: Path) -> None:
    (continuous / VERSIONS / "0").write_bytes(b"")
    assert codes(continuous) == []


def test_unfinished_epoch_without_its_messages_is_a_fault_until_it_is_finished(continuous: Path) -> None:
    checkpoint = read_checkpoint(str(continuous))
    (continuous / MESSAGES / "2").unlink()
    assert codes(continuous) == [("fault", "no-messages", f"{MESSAGES}/2")]
    (continuous / "commits" / "2").write_text("v1\n{}")
    findings = Findings()
    check_files(checkpoint, findings)
    assert list(findings) == []


def test_initial_offsets_matter_until_batch_0_is_finished(location: Path) -> None:
    (location / "sources" / "0" / ".0.crc").unlink()
    (location / "sources" / "0" / "0").write_bytes(b"\0v1\n{")
    assert codes(location) == [("warning", "damaged", "sources/0/0")]
    for name in ("0", "1", "2"):
        (location / "commits" / name).unlink()
        (location / "commits" / f".{name}.crc").unlink()
    for name in ("1", "2"):
        (location / "offsets" / name).unlink()
        (location / "offsets" / f".{name}.crc").unlink()
    assert codes(location) == [("fault", "damaged", "sources/0/0")]


def add_state(location: Path, place: str, *names: str) -> None:
    (location / place).mkdir(parents=True, exist_ok=True)
    for name in names:
        (location / place / name).write_bytes(b"")


@pytest.mark.parametrize("name", ["{}.delta", "{}.snapshot", "{}.zip", "{}_5f2a.changelog"])
def test_state_must_have_the_version_after_the_last_finished_batch(location: Path, name: str) -> None:
    for partition, version in (("0", 3), ("1", 2)):
        add_state(location, f"state/0/{partition}", *(name.format(each) for each in range(1, version + 1)))
    (finding,) = found_in(location)
    assert (finding.severity.value, finding.code, finding.where) == ("fault", "state-behind", "state/0/1")
    assert finding.text.startswith("The newest version of the state is 2; a restart loads version 3, which batch 2 has")


@pytest.mark.parametrize(
    "names",
    [
        ("2.snapshot", "4.delta"),
        ("1.delta", "3.delta"),
        ("1.zip", "3_5f2a.changelog", "4_5f2a.changelog"),
    ],
)
def test_state_without_a_change_before_its_newest_version_is_a_fault(location: Path, names: tuple[str, ...]) -> None:
    add_state(location, "state/0/0", "1.delta", "2.delta", "2.snapshot", "3.delta", "4.delta")
    add_state(location, "state/0/1", *names)
    (finding,) = found_in(location)
    assert (finding.severity.value, finding.code, finding.where) == ("fault", "state-incomplete", "state/0/1")
    assert finding.text == (
        "Version 3 of the state is not whole: there is no snapshot of a version up to it with all changes since then; "
        "a restart loads version 3, which batch 2 has written, and fails without it."
    )


@pytest.mark.parametrize("beside", ["_metadata", "SSTs", "logs"])
def test_partition_of_a_state_without_a_version_is_a_fault(location: Path, beside: str) -> None:
    add_state(location, "state/0/0", "3.zip")
    add_state(location, f"state/0/1/{beside}", "7.sst")
    assert codes(location) == [("fault", "state-missing", "state/0/1")]


def test_state_without_any_version_is_a_warning_as_it_may_have_been_dropped(location: Path) -> None:
    add_state(location, "state/0/0", "3.snapshot")
    add_state(location, "state/1/0")
    assert codes(location) == [("warning", "state-empty", "state/1")]


def test_stores_of_a_join_are_looked_at_one_by_one(location: Path) -> None:
    add_state(location, "state/0/0/_metadata", "schema")
    add_state(location, "state/0/0/left-keyToNumValues", "1.delta", "2.delta", "3.delta")
    add_state(location, "state/0/0/left-keyWithIndexToValue")
    add_state(location, "state/0/0/right-keyToNumValues", "1.delta")
    assert codes(location) == [
        ("fault", "state-missing", "state/0/0/left-keyWithIndexToValue"),
        ("fault", "state-behind", "state/0/0/right-keyToNumValues"),
    ]


def test_state_of_which_not_all_files_are_listed_is_not_judged(location: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_state(location, "state/0/0", *(f"{number}.delta" for number in range(1, 30)))
    monkeypatch.setattr("pyspark_kafka.checkpoint.files.MAX_NAMES", 20)
    findings = found_in(location)
    assert list(findings) == []
    assert findings.unknown == ["The directory state/0/0 has more than 20 files; only these were looked at."]


def test_directory_that_is_too_long_is_said_to_be_so(location: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyspark_kafka.checkpoint.files.MAX_NAMES", 4)
    assert any("has more than" in sentence for sentence in found_in(location).unknown)
