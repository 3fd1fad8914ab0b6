"""Listeners that encrypt and authenticate: each classic confusion is named, with the option to change.

The journeys begin with an address and end with a check that is fine, by doing what the remedies say and nothing else.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone

import pytest

from pyspark_kafka import check
from pyspark_kafka._ops.diagnosis import Diagnosis, Finding, FindingStatus
from pyspark_kafka.testing import EmbeddedKafka, Listener

_SCRAM = "SCRAM-SHA-512"
_MAX_REMEDIES = 10


@pytest.fixture(scope="module")
def topic(secured_kafka: EmbeddedKafka) -> str:
    # Tests of other modules may come between these, and then it is recreated.
    name = f"check-orders-{uuid.uuid4().hex[:8]}"
    secured_kafka.create_topic(name)
    return name


def failure(diagnosis: Diagnosis, step: str) -> Finding:
    (found,) = [each for each in diagnosis.findings if each.status is FindingStatus.FAILED]
    assert found.step == step, found
    return found


@pytest.mark.parametrize("listener", ["SSL", "MTLS", "SASL_PLAINTEXT", "SASL_SSL"])
def test_right_options_pass_on_every_listener(secured_kafka: EmbeddedKafka, topic: str, listener: str) -> None:
    found = check({**secured_kafka.client_options(listener, "alice"), "subscribe": topic, "topic": topic})
    assert found.ok, found
    (tls,) = found.of("tls")
    (sasl,) = found.of("sasl")
    if listener != "SASL_PLAINTEXT":
        (certificate,) = tls.facts["chain"]
        assert certificate["subject"].startswith("CN=broker")
        assert certificate["names"] == ["localhost", "127.0.0.1"]
        assert certificate["days_left"] > 365
        own = tls.facts.get("client_certificate")
        assert (own or {}).get("subject", "").startswith("CN=alice") is (listener in ("SSL", "MTLS"))
        assert (tls.facts["tls_version"], tls.facts["asks_for_client_certificate"]) == ("TLSv1.3", listener == "MTLS")
    if listener.startswith("SASL"):
        assert set(sasl.facts["mechanisms"]) == {"SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN", "OAUTHBEARER"}
        assert sasl.facts["user"] == "alice"


def test_token_is_a_login_whose_end_is_told(secured_kafka: EmbeddedKafka, topic: str) -> None:
    given = secured_kafka.client_options("SASL_SSL", "alice", mechanism="OAUTHBEARER")
    found = check({**given, "subscribe": topic})
    assert found.ok, found
    (login,) = found.of("sasl")
    assert "with OAUTHBEARER; the broker asks again after about" in login.text


@pytest.mark.parametrize("listener", ["SSL", "MTLS", "SASL_SSL"])
def test_plain_client_on_a_tls_port_is_told_the_protocol(secured_kafka: EmbeddedKafka, listener: str) -> None:
    found = failure(check({"bootstrap.servers": secured_kafka.address(listener)}), "tls")
    protocol = "SASL_SSL" if listener == "SASL_SSL" else "SSL"
    assert found.text.endswith("speaks TLS, but kafka.security.protocol is 'PLAINTEXT'.")
    assert found.remedy.startswith(f"Set kafka.security.protocol to {protocol}, ")


def test_tls_client_on_a_plain_port_is_told_the_protocol(secured_kafka: EmbeddedKafka) -> None:
    found = failure(check({"bootstrap.servers": secured_kafka.address(), "security.protocol": "SSL"}), "tls")
    assert found.remedy.startswith("Name the port of the listener with TLS in kafka.bootstrap.servers.")
    assert found.remedy.endswith("set kafka.security.protocol to PLAINTEXT.")


def test_unknown_authority_is_named_with_the_certificate_that_was_found(secured_kafka: EmbeddedKafka) -> None:
    found = failure(check({"bootstrap.servers": secured_kafka.address("SSL"), "security.protocol": "SSL"}), "tls")
    assert "CN=broker" in found.text
    assert "Set kafka.ssl.truststore.location" in found.remedy
    assert found.facts["option"] == "kafka.ssl.truststore.location"
    (certificate,) = found.facts["chain"]
    assert certificate["issuer"].endswith("O=pyspark-kafka")


def test_listener_that_wants_a_client_certificate_says_so(secured_kafka: EmbeddedKafka) -> None:
    given = {**secured_kafka.client_options("SSL"), "kafka.bootstrap.servers": secured_kafka.address("MTLS")}
    found = failure(check(given), "tls")
    assert "asks for a client certificate, and none is given" in found.text
    assert found.facts["option"] == "kafka.ssl.keystore.location"


def test_wrong_password_is_told_without_it(secured_kafka: EmbeddedKafka) -> None:
    given = secured_kafka.client_options("SASL_SSL", "bob", mechanism=_SCRAM)
    given["kafka.sasl.jaas.config"] = given["kafka.sasl.jaas.config"].replace("password of bob", "hunter2")
    done = check(given)
    found = failure(done, "sasl")
    assert "'bob'" in found.text
    assert found.remedy.startswith("Correct the user name or the password in kafka.sasl.jaas.config")
    assert "hunter2" not in str(done.to_json())


def test_mechanism_that_is_not_offered_is_told_with_those_that_are() -> None:
    with EmbeddedKafka(listeners=[Listener("SASL_PLAINTEXT", mechanisms=("PLAIN",))], users={"a": "b"}) as kafka:
        given = kafka.client_options("SASL_PLAINTEXT", "a")
        given["kafka.sasl.mechanism"] = _SCRAM
        given["kafka.sasl.jaas.config"] = given["kafka.sasl.jaas.config"].replace(
            "plain.PlainLoginModule", "scram.ScramLoginModule"
        )
        found = failure(check(given), "sasl")
    assert "does not offer the mechanism SCRAM-SHA-512; it offers PLAIN." in found.text
    assert found.facts["value"] == "PLAIN"


def test_login_at_a_listener_without_sasl_is_told_the_protocol(secured_kafka: EmbeddedKafka) -> None:
    given = secured_kafka.client_options("SASL_PLAINTEXT", "alice")
    found = failure(check({**given, "kafka.bootstrap.servers": secured_kafka.address()}), "sasl")
    assert found.remedy.startswith("Name the port of the listener with SASL in kafka.bootstrap.servers.")
    assert "kafka.security.protocol to PLAINTEXT and remove kafka.sasl.mechanism" in found.remedy


def test_rights_that_are_missing_are_told_with_the_command(secured_kafka: EmbeddedKafka, topic: str) -> None:
    given = {"subscribe": topic, "topic": topic, "deliveryGuarantee": "exactly_once"}
    found = check({**secured_kafka.client_options("SASL_SSL", "bob"), **given})
    missing = found.of("rights", FindingStatus.FAILED)
    assert [each.facts["feature"] for each in missing] == ["read", "write", "exactly once"]
    address = secured_kafka.address("SASL_SSL")
    assert missing[0].facts["commands"] == [
        f"kafka-acls --bootstrap-server {address} --add --allow-principal User:bob --operation Read --topic {topic}"
    ]
    (others,) = found.of("rights", FindingStatus.OK)
    assert "READ on consumer group" in others.text


@pytest.fixture
def changing() -> Iterator[EmbeddedKafka]:
    """A broker whose certificate a test replaces."""
    with EmbeddedKafka(listeners=[Listener("SSL")]) as kafka:
        yield kafka


def test_certificates_that_do_not_fit_are_told_apart(changing: EmbeddedKafka) -> None:
    given, authority, now = changing.client_options("SSL"), changing.security.authority, datetime.now(timezone.utc)
    day = timedelta(days=1)

    changing.security.replace_certificate("SSL", authority.issue(not_before=now - 9 * day, not_after=now - 2 * day))
    expired = failure(check(given), "tls")
    assert "expired 2 days ago" in expired.text
    assert expired.remedy.startswith("Renew that certificate, or correct the clock")

    changing.security.replace_certificate("SSL", authority.issue("kafka.example"))
    other = failure(check(given), "tls")
    assert "it is not for '127.0.0.1', the name that this client used, but for 'kafka.example'" in other.text
    assert other.facts["option"] == "kafka.bootstrap.servers"

    changing.security.replace_certificate("SSL", authority.issue(not_after=now + 3 * day))
    soon = check(given)
    assert soon.ok
    (warning,) = soon.of("tls", FindingStatus.WARNING)
    assert "expires in 2 days" in warning.text


def follow(found: Finding, options: dict[str, str], known: dict[str, str]) -> None:
    """Do what a remedy says: set the options that it names, to its value or to what the user has for them.

    Raises:
        AssertionError: the remedy names nothing that the user could set.
    """
    named = re.findall(r"kafka\.(?:sasl|ssl|security)[a-z.]*[a-z]", found.remedy)
    values = dict(re.findall(r"(kafka\.[a-z.]+[a-z]) to:? ([A-Z][A-Z0-9_-]+)\b", found.remedy))
    # A remedy may offer something else instead: what comes after "or" is for others.
    set_now = {
        name: values.get(name) or known[name] for name in dict.fromkeys(named) if name in values or name in known
    }
    changed = {name: value for name, value in set_now.items() if options.get(name) != value}
    assert changed, f"the remedy names no option to set: {found.text} -> {found.remedy}"
    options.update(changed)


def journey(options: dict[str, str], known: dict[str, str]) -> list[str]:
    """Follow remedies until the check is fine; return the step that failed each time."""
    steps: list[str] = []
    for _ in range(_MAX_REMEDIES):
        done = check(options)
        failed = [each for each in done.findings if each.status is FindingStatus.FAILED]
        if not failed:
            assert done.ok, done
            return steps
        steps.append(failed[0].step)
        follow(failed[0], options, known)
    raise AssertionError(f"no end after {_MAX_REMEDIES} remedies: {steps}")


def test_remedies_alone_lead_from_an_address_to_mutual_tls(secured_kafka: EmbeddedKafka, topic: str) -> None:
    """The user has an address, the file of the authority, and a file with a certificate and its key."""
    mine = secured_kafka.client_options("MTLS", "alice")
    known = {name: mine[name] for name in ("kafka.ssl.truststore.location", "kafka.ssl.keystore.location")}
    known |= {"kafka.ssl.truststore.type": "PEM", "kafka.ssl.keystore.type": "PEM"}
    options = {"kafka.bootstrap.servers": secured_kafka.address("MTLS"), "subscribe": topic}
    steps = journey(options, known)
    assert set(steps) <= {"tls", "options"}
    assert options["kafka.security.protocol"] == "SSL"


@pytest.mark.parametrize("listener", ["SASL_SSL", "SASL_PLAINTEXT"])
def test_remedies_alone_lead_from_an_address_to_a_scram_login(
    secured_kafka: EmbeddedKafka, topic: str, listener: str
) -> None:
    """The user has an address, a name with a password, and the file of the authority."""
    mine = secured_kafka.client_options(listener, "alice", mechanism=_SCRAM)
    known = {
        name: value
        for name, value in mine.items()
        if name in ("kafka.ssl.truststore.location", "kafka.sasl.jaas.config")
    }
    known["kafka.ssl.truststore.type"] = "PEM"
    options = {"kafka.bootstrap.servers": secured_kafka.address(listener), "subscribe": topic}
    steps = journey(options, known)
    assert set(steps) <= {"tls", "sasl", "options"}
    assert options["kafka.security.protocol"] == listener
    assert options["kafka.sasl.mechanism"] == _SCRAM
