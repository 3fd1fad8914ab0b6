"""The mechanisms of a listener beside those of the options."""

from __future__ import annotations

import pytest

from pyspark_kafka.client.probes.listener import ListenerFacts
from pyspark_kafka.diagnosis.steps.login import judge_mechanism
from pyspark_kafka.options import ConnectionOptions, ScramLogin, Secret

SERVER = ("kafka-1", 9092)
PLAIN = ConnectionOptions((SERVER,))
SCRAM = ConnectionOptions(
    (SERVER,), security_protocol="SASL_PLAINTEXT", login=ScramLogin("a", Secret("hunter2"), "SCRAM-SHA-512")
)


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (PLAIN, ListenerFacts("PLAINTEXT")),
        (SCRAM, ListenerFacts("SASL_PLAINTEXT", ("PLAIN", "SCRAM-SHA-512"))),
        # A gateway that does not list them.
        (SCRAM, ListenerFacts("SASL_PLAINTEXT")),
    ],
)
def test_login_that_fits_is_tried(options: ConnectionOptions, found: ListenerFacts) -> None:
    assert judge_mechanism(SERVER, options, found) is None


def test_best_mechanism_is_proposed_with_its_login_module() -> None:
    found = judge_mechanism(SERVER, PLAIN, ListenerFacts("SASL_PLAINTEXT", ("PLAIN", "SCRAM-SHA-256")))
    assert found is not None
    assert found.facts["value"] == "SASL_PLAINTEXT"
    assert "kafka.sasl.mechanism to SCRAM-SHA-256" in found.remedy


def test_mechanisms_that_nobody_here_has_are_answered_with_another_listener() -> None:
    found = judge_mechanism(SERVER, SCRAM, ListenerFacts("SASL_PLAINTEXT", ("X-NEW",)))
    assert found is not None
    assert found.remedy.startswith("Name the port of another listener")


def test_no_secret_is_in_what_is_found() -> None:
    for listener in (ListenerFacts("PLAINTEXT"), ListenerFacts("SASL_PLAINTEXT", ("PLAIN",))):
        assert "hunter2" not in str(judge_mechanism(SERVER, SCRAM, listener))
