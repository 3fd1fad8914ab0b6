"""Findings and what is made of all of them."""

from __future__ import annotations

import json

import pytest

from pyspark_kafka._ops.diagnosis import Diagnosis, Finding, FindingStatus


def finding(status: FindingStatus, step: str = "tcp") -> Finding:
    return Finding(step, status, "Found.", "Change it.", {"server": "a:1"}, "worker w")


@pytest.mark.parametrize(
    ("status", "ok"),
    [
        (FindingStatus.OK, True),
        (FindingStatus.WARNING, True),
        (FindingStatus.UNKNOWN, True),
        (FindingStatus.FAILED, False),
        (FindingStatus.SKIPPED, False),
    ],
)
def test_diagnosis_is_ok_unless_something_failed_or_was_skipped(status: FindingStatus, ok: bool) -> None:
    assert Diagnosis((finding(FindingStatus.OK), finding(status))).ok is ok


def test_finding_survives_json() -> None:
    given = finding(FindingStatus.FAILED)
    assert Finding.from_json(json.loads(json.dumps(given.to_json()))) == given


def test_schema_of_the_json_is_the_documented_one() -> None:
    told = Diagnosis((finding(FindingStatus.WARNING),), 12).to_json()
    assert told == {
        "schema": 1,
        "ok": True,
        "elapsed_ms": 12,
        "counts": {"ok": 0, "warning": 1, "failed": 0, "skipped": 0, "unknown": 0},
        "findings": [
            {
                "where": "worker w",
                "step": "tcp",
                "status": "warning",
                "text": "Found.",
                "remedy": "Change it.",
                "facts": {"server": "a:1"},
            }
        ],
    }


def test_findings_of_a_step_are_selected_by_status() -> None:
    ok, failed, other = finding(FindingStatus.OK), finding(FindingStatus.FAILED), finding(FindingStatus.FAILED, "tls")
    diagnosis = Diagnosis((ok, failed, other))
    assert diagnosis.of("tcp") == [ok, failed]
    assert diagnosis.of("tcp", FindingStatus.FAILED) == [failed]
