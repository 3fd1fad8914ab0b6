"""The fuzzer itself: what it must notice, it notices."""

from __future__ import annotations

import mmap
from pathlib import Path
from random import Random
from typing import Any

import pytest

from fuzzing import child, worker
from fuzzing.draw import Draw
from fuzzing.oracles import OracleError, both_variants, load_variants
from fuzzing.record_mutation import mutate_records, split
from fuzzing.seeds import seeds_of
from fuzzing.targets import TARGETS, Target
from fuzzing.value_targets import drawn_values, mutate_values
from pyspark_kafka.errors import ConnectorError, ProtocolError
from pyspark_kafka.records import _variant, decode

# What a worker does first, before what the test has it do.
WORKER = """
import os, sys, time
path = next(argument for argument in sys.argv if argument.startswith("--shared=")).removeprefix("--shared=")
with open(path, "r+b") as shared:
    shared.write((3).to_bytes(8, "little") + (5).to_bytes(8, "little") + b"input")
"""


@pytest.fixture
def job(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> child.Job:
    """A job for a worker whose program the test writes."""
    monkeypatch.setattr(child, "HERE", tmp_path)
    monkeypatch.setattr(child, "CRASHES", tmp_path / "crashes")
    (tmp_path / "fuzzing").mkdir()
    return child.Job("batch", "mutation", 1, 1, "both", tmp_path)


def program(ending: str) -> None:
    (child.HERE / "fuzzing" / "worker.py").write_text(WORKER + ending)


@pytest.mark.parametrize(
    ("ending", "finding"),
    [
        ("os.abort()", "exit code -6: no error text"),
        ("raise ValueError('odd')", "exit code 1: ValueError: odd"),
        ("time.sleep(600)", "no end after 6 s"),
    ],
)
def test_a_crash_an_error_and_a_hang_are_findings_whose_input_is_saved(
    job: child.Job, ending: str, finding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The start of the worker is within it.
    monkeypatch.setattr(child, "_HANGS_AFTER_S", 6.0)
    program(ending)
    report = child.run(job, {})
    assert (report.executions, report.finding) == (3, finding)
    assert report.saved is not None
    assert report.saved.read_bytes() == b"input"
    assert report.saved.with_suffix(".txt").read_text().startswith(finding)


def test_a_worker_that_ends_well_found_nothing(job: child.Job) -> None:
    program("")
    assert child.run(job, {}) == child.Report(3)


def executed(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "_WARM_UP", 0)
    shared = mmap.mmap(-1, worker.SHARED_BYTES)
    worker.Execution(Target(lambda data, variants: run()), [], shared).run(b"some input")  # noqa: ARG005 - a target
    assert shared[: worker.SHARED_HEAD.size] == worker.SHARED_HEAD.pack(1, 10)


def test_too_much_memory_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "MAX_GROWTH_BYTES", -1)
    with pytest.raises(MemoryError, match="10 bytes made the process grow by"):
        executed(lambda: None, monkeypatch)


def test_too_much_time_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "MAX_SECONDS", -1.0)
    with pytest.raises(TimeoutError, match="10 bytes took"):
        executed(lambda: None, monkeypatch)


def test_variants_that_differ_are_a_finding() -> None:
    values = iter([1, 2])
    with pytest.raises(OracleError, match="the variants differ: 1 and 2"):
        both_variants(lambda: next(values), [_variant.kernel] * 2, lambda left, right: left == right)


def test_variants_that_refuse_with_other_words_are_a_finding() -> None:
    words = iter(["one", "other"])

    def refuse() -> int:
        raise ProtocolError(next(words), condition="REFUSED")

    with pytest.raises(OracleError, match="the variants differ"):
        both_variants(refuse, [_variant.kernel] * 2, lambda left, right: left == right)


def test_an_error_that_is_not_ours_is_a_finding() -> None:
    with pytest.raises(ZeroDivisionError):
        both_variants(lambda: 1 // 0, [_variant.kernel], lambda left, right: left == right)


def test_mutations_of_batches_mostly_pass_the_checksum_and_follow_the_seed() -> None:
    seeds, random = seeds_of("batch"), Random(1)
    made = [mutate_records(random.choice(seeds), random.choice(seeds), random) for _ in range(300)]
    again = Random(1)
    assert made == [mutate_records(again.choice(seeds), again.choice(seeds), again) for _ in range(300)]
    passed = 0
    for data in made:
        for one in split(data[12:]):
            try:
                decode(one, start_offset=0)
            except ConnectorError as error:
                passed += "CRC-32C" not in str(error)
            else:
                passed += 1
    batches = sum(len(split(data[12:])) for data in made)
    assert passed > 0.8 * batches


def test_mutations_of_values_repeat_bytes_many_times_and_follow_the_seed() -> None:
    seeds, random, again = seeds_of("protobuf_values"), Random(1), Random(1)
    made = [mutate_values(random.choice(seeds), random.choice(seeds), random) for _ in range(300)]
    assert made == [mutate_values(again.choice(seeds), again.choice(seeds), again) for _ in range(300)]
    assert max(len(each or b"") for data in made for each in drawn_values(Draw(data))) >= 200_000
    framed = [TARGETS["framing"].mutate(b"\1\3" + each, b"", random) for each in seeds for _ in range(100)]
    repeated = [data[2:] for data in framed if data.startswith(b"\1\3\0\xff\xfe")]
    assert max(len(each or b"") for data in repeated for each in drawn_values(Draw(data))) >= 200_000


def fuzzed_batches(count: int) -> None:
    target, random, seeds, variants = TARGETS["batch"], Random(2), seeds_of("batch"), load_variants("compiled")
    for _ in range(count):
        target.run(target.mutate(random.choice(seeds), random.choice(seeds), random), variants)


def test_a_decoder_that_skips_a_check_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted fault: the end of the range is not heeded."""
    from pyspark_kafka.records import decoding  # noqa: PLC0415 - what is patched, beside where it is

    monkeypatch.setattr(decoding, "MAX_OFFSET", 50)
    with pytest.raises(OracleError):
        fuzzed_batches(2_000)
