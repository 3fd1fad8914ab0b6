from __future__ import annotations

from pyspark_kafka._ops.operations.checkpoints.verify.findings import CheckpointFinding, Findings, Severity


def test_findings_begin_with_the_faults() -> None:
    findings = Findings()
    findings.add_finding(Severity.NOTE, "a", "1", "x")
    findings.add_finding(Severity.FAULT, "b", "2", "y", "z")
    assert list(findings) == [
        CheckpointFinding(Severity.FAULT, "b", "2", "y", "z"),
        CheckpointFinding(Severity.NOTE, "a", "1", "x"),
    ]


def test_many_findings_of_a_kind_are_counted_and_not_kept() -> None:
    findings = Findings()
    for number in range(100_000):
        findings.add_finding(Severity.WARNING, "damaged", str(number), "x")
    found = list(findings)
    assert len(found) == 21
    assert found[-1].text == "99980 more findings of this kind."
    assert findings.count(Severity.WARNING) == 100_000
    assert findings.count(Severity.FAULT) == 0
