"""tools/check_commits.py, which `make lint` runs: what it accepts and what it reports."""

from __future__ import annotations

import check_commits


def test_imperative_subject_with_a_body_has_no_faults() -> None:
    assert check_commits.faults_of("Compile the kernels side by side", "They took two minutes.") == []
    assert check_commits.faults_of("Pass the deadline to the look-up of leaders", "It waited for ever.") == []


def test_each_rule_of_messages_is_reported() -> None:
    def faults(subject: str, body: str = "A reason.") -> str:
        return " ".join(check_commits.faults_of(subject, body))

    assert "has 73 characters, at most 72" in faults("A" + "d" * 72)
    assert "begins with a prefix: Tests:" in faults("Tests: brokers have time")
    for subject in ("Adds a check", "Added a check", "Adding a check", "The check is added", "add a check"):
        assert "an imperative such as Add, Fix or Move is expected" in faults(subject), subject
    assert "one phrase without a semicolon" in faults("Fix the lag; test it")
    assert "one phrase without a semicolon and a full stop" in faults("Fix the lag.")
    assert "the body is empty" in faults("Fix the lag", "\n")
