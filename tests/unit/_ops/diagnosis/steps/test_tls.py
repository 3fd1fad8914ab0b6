"""What a listener speaks beside what the options say, and its certificates."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

from pyspark_kafka._client.client.queries.listener import ListenerStatus, TlsStatus
from pyspark_kafka._client.client.tls.certificates import ParsedCertificate
from pyspark_kafka._client.options import ConnectionOptions, PlainLogin, Secret
from pyspark_kafka._ops.diagnosis import FindingStatus
from pyspark_kafka._ops.diagnosis.steps.tls import describe_chain, judge_listener
from pyspark_kafka.errors import TransportError

SERVER = ("kafka-1", 9093)


def certificate(days: float, **changes: Any) -> ParsedCertificate:
    now = datetime.now(timezone.utc)
    ends = now + timedelta(days=days)
    made = ParsedCertificate("CN=kafka-1", "CN=issuer", ("kafka-1",), now, ends, is_authority=False, der=b"")
    return replace(made, **changes)


def tls(*chain: ParsedCertificate, asks: bool | None = False) -> ListenerStatus:
    return ListenerStatus("SSL", tls=TlsStatus("TLSv1.3", "CIPHER", chain or (certificate(100),), asks))


def options(protocol: str) -> ConnectionOptions:
    login = PlainLogin("a", Secret("b")) if protocol.startswith("SASL") else None
    return ConnectionOptions((SERVER,), security_protocol=protocol, login=login)


def test_tls_that_is_accepted_is_fine_and_shows_the_chain() -> None:
    chain = (certificate(100.5, issuer="CN=inner"), certificate(900, subject="CN=inner", issuer="CN=root"))
    found = judge_listener(SERVER, options("SSL"), tls(*chain), None)
    assert found.status is FindingStatus.OK
    assert "certificate CN=kafka-1 for kafka-1, issued by CN=inner < CN=root, expires in 100 days" in found.text
    assert [each["subject"] for each in found.facts["chain"]] == ["CN=kafka-1", "CN=inner"]


def test_certificate_that_expires_soon_is_a_warning_also_if_it_is_the_issuer() -> None:
    chain = (certificate(100), certificate(3, subject="CN=issuer", issuer="CN=root"))
    assert judge_listener(SERVER, options("SSL"), tls(*chain), None).status is FindingStatus.WARNING


def test_chain_that_python_does_not_tell_is_said_to_be_unknown() -> None:
    assert describe_chain(TlsStatus("TLSv1.3", "C", (), None)) == "its certificate cannot be shown"
    own = certificate(1, issuer="CN=kafka-1")
    assert "self-signed" in describe_chain(TlsStatus("TLSv1.3", "C", (own,), None))


def test_listener_with_sasl_is_answered_with_a_whole_login() -> None:
    found = judge_listener(
        SERVER, options("PLAINTEXT"), replace(tls(), protocol="SASL_SSL", mechanisms=("PLAIN", "SCRAM-SHA-256")), None
    )
    assert found.remedy.startswith(
        "Set kafka.security.protocol to SASL_SSL, kafka.sasl.mechanism to SCRAM-SHA-256 and kafka.sasl.jaas.config to: "
        'org.apache.kafka.common.security.scram.ScramLoginModule required username="…" password="…";'
    )


def test_login_that_is_there_keeps_its_options_on_the_other_kind_of_listener() -> None:
    found = judge_listener(SERVER, options("SASL_SSL"), ListenerStatus("SASL_PLAINTEXT", ("PLAIN",)), None)
    assert found.remedy == (
        "Name the port of the listener with TLS in kafka.bootstrap.servers. Without TLS the password and all records "
        "can be read and changed on the way; only if whoever runs the cluster says that this listener is meant, set "
        "kafka.security.protocol to SASL_PLAINTEXT."
    )


def test_handshake_that_fails_for_another_reason_keeps_the_hint_of_its_error() -> None:
    refused = TransportError("It broke.", condition="TLS_HANDSHAKE_FAILED", hint="Do this.")
    found = judge_listener(SERVER, options("SSL"), tls(), refused)
    assert (found.status, found.remedy) == (FindingStatus.FAILED, "Do this.")
    assert found.text.startswith("It broke. Found: TLSv1.3, certificate CN=kafka-1")
