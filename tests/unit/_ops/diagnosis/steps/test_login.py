"""The mechanisms of a listener beside those of the options."""

from __future__ import annotations

import pytest

from pyspark_kafka._client.client.queries.listener import ListenerStatus
from pyspark_kafka._client.options import ConnectionOptions, ScramLogin, Secret
from pyspark_kafka._ops.diagnosis.steps.login import judge_mechanism

SERVER = ("kafka-1", 9092)
PLAIN = ConnectionOptions((SERVER,))
SCRAM = ConnectionOptions(
    (SERVER,), security_protocol="SASL_PLAINTEXT", login=ScramLogin("a", Secret("hunter2"), "SCRAM-SHA-512")
)


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (PLAIN, ListenerStatus("PLAINTEXT")),
        (SCRAM, ListenerStatus("SASL_PLAINTEXT", ("PLAIN", "SCRAM-SHA-512"))),
        # A gateway that does not list them.
        (SCRAM, ListenerStatus("SASL_PLAINTEXT")),
    ],
)
def test_login_that_fits_is_tried(options: ConnectionOptions, found: ListenerStatus) -> None:
    assert judge_mechanism(SERVER, options, found) is None


def test_best_mechanism_is_proposed_with_its_login_module() -> None:
    found = judge_mechanism(SERVER, PLAIN, ListenerStatus("SASL_PLAINTEXT", ("PLAIN", "SCRAM-SHA-256")))
    assert found is not None
    assert found.facts["value"] == "SASL_PLAINTEXT"
    assert "kafka.sasl.mechanism to SCRAM-SHA-256" in found.remedy


def test_weaker_mechanism_is_named_last_and_with_what_it_costs() -> None:
    found = judge_mechanism(SERVER, SCRAM, ListenerStatus("SASL_PLAINTEXT", ("PLAIN",)))
    assert found is not None
    assert found.remedy.startswith(
        "Name the port of a listener that offers SCRAM-SHA-512 in kafka.bootstrap.servers, or"
    )
    assert "Only if whoever runs the cluster says so, set kafka.sasl.mechanism to PLAIN and" in found.remedy
    assert found.remedy.endswith(
        ": with PLAIN the password itself goes to whoever answers there, and with SCRAM-SHA-512 it does not."
    )


def test_listener_without_a_login_is_answered_with_the_one_that_has_it() -> None:
    found = judge_mechanism(SERVER, SCRAM, ListenerStatus("PLAINTEXT"))
    assert found is not None
    assert found.remedy.startswith(
        "Name the port of the listener with SASL in kafka.bootstrap.servers. Only if whoever"
    )


def test_mechanisms_that_nobody_here_has_are_answered_with_another_listener() -> None:
    found = judge_mechanism(SERVER, SCRAM, ListenerStatus("SASL_PLAINTEXT", ("X-NEW",)))
    assert found is not None
    assert found.remedy.startswith("Name the port of another listener")


def test_no_secret_is_in_what_is_found() -> None:
    for listener in (ListenerStatus("PLAINTEXT"), ListenerStatus("SASL_PLAINTEXT", ("PLAIN",))):
        assert "hunter2" not in str(judge_mechanism(SERVER, SCRAM, listener))
