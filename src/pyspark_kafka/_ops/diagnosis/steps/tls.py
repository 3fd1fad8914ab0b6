"""TLS: whether the listener and the options agree on it, and whether its certificate is accepted."""

from __future__ import annotations

import ssl
from dataclasses import replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from pyspark_kafka._client.client.net.connection import address_of
from pyspark_kafka._client.client.net.handshake import open_connection
from pyspark_kafka._client.client.queries.listener import ListenerStatus, probe_listener
from pyspark_kafka._client.client.tls.certificates import shown_time
from pyspark_kafka._client.client.tls.contexts import tls_context
from pyspark_kafka._client.client.tls.errors import unencrypted_warning
from pyspark_kafka._ops.diagnosis.findings import Finding, FindingStatus
from pyspark_kafka._ops.diagnosis.side_by_side import ask_all
from pyspark_kafka._ops.diagnosis.steps.login import protocol_with_login
from pyspark_kafka.errors import ConnectorError, OptionError, listed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark_kafka._client.client.queries.listener import TlsStatus
    from pyspark_kafka._client.client.tls.certificates import ParsedCertificate
    from pyspark_kafka._client.client.waiting.deadline import Deadline
    from pyspark_kafka._client.options import ConnectionOptions
    from pyspark_kafka._ops.diagnosis.context import Context, Server

_PROTOCOL = "kafka.security.protocol"
_TRUSTSTORE = "kafka.ssl.truststore.location"
_KEYSTORE = "kafka.ssl.keystore.location"
_SERVERS = "kafka.bootstrap.servers"
# A certificate that expires sooner is warned of.
_SOON_DAYS = 14

# OpenSSL's reasons for a certificate that is for another name (x509_vfy.h).
_NAME_MISMATCH = (62, 63, 64)


def judge_tls(context: Context) -> Iterator[Finding]:
    """Find out what each listener speaks, and shake hands with it as a query would."""
    options = context.settings.connection

    def ask(server: Server) -> tuple[ListenerStatus, ConnectorError | None]:
        found = probe_listener(*server, options, context.step())
        return found, greet(server, options, context.step()) if options.uses_tls and found.uses_tls else None

    good: list[Server] = []
    for server, result in ask_all(context.accepting, ask, context.step()).items():
        if not isinstance(result, tuple):
            yield _silent(server, options)
            continue
        found, refused = result
        context.listeners[server] = found
        finding = judge_listener(server, options, found, refused)
        if finding.status in (FindingStatus.OK, FindingStatus.WARNING):
            good.append(server)
        yield finding
    context.usable = good
    if not good:
        context.blocked = "no listener can be talked to with these options"


def greet(server: Server, options: ConnectionOptions, deadline: Deadline) -> ConnectorError | None:
    """Connect, encrypt and fetch versions, without a login; return why that fails, or None."""
    secured = "SSL" if options.uses_tls else "PLAINTEXT"
    try:
        open_connection(*server, replace(options, security_protocol=secured, login=None), deadline).close()
    except ConnectorError as error:
        return error
    return None


def judge_listener(
    server: Server, options: ConnectionOptions, found: ListenerStatus, refused: ConnectorError | None
) -> Finding:
    """Compare what a listener speaks with what the options say. Pure, except for the clock."""
    address = address_of(*server)
    given = options.security_protocol
    facts: dict[str, Any] = {"server": address, "listener": found.protocol, "option": _PROTOCOL}
    if found.protocol is None:
        return _silent(server, options)
    if options.uses_tls != found.uses_tls:
        speaks = "TLS" if found.uses_tls else "plaintext, without TLS"
        facts["value"] = found.protocol
        advice = f"{_PROTOCOL} to {found.protocol}" if options.uses_sasl else protocol_with_login(found)
        remedy = f"Set {advice}, or name the port of another listener in {_SERVERS}."
        if options.uses_tls:
            remedy = (
                f"Name the port of the listener with TLS in {_SERVERS}. {unencrypted_warning(options)}, set {advice}."
            )
        return Finding(
            "tls",
            FindingStatus.FAILED,
            f"{address} speaks {speaks}, but {_PROTOCOL} is '{given}'.",
            remedy,
            facts,
        )
    if found.tls is None:
        text = f"No TLS: {address} is a plaintext listener, and what is sent can be read on the way."
        return Finding("tls", FindingStatus.OK, text, facts=facts)
    facts |= tls_facts(found.tls)
    if refused is not None:
        return _refused(found.tls, refused, facts)
    return _accepted(address, options, found.tls, facts)


def tls_facts(tls: TlsStatus) -> dict[str, Any]:
    """Return the known facts about a TLS listener as values for JSON."""
    return {
        "tls_version": tls.version,
        "cipher": tls.cipher,
        "asks_for_client_certificate": tls.asks_for_certificate,
        "chain": [certificate_facts(each) for each in tls.chain],
    }


def certificate_facts(certificate: ParsedCertificate) -> dict[str, Any]:
    """Return a certificate as values for JSON."""
    return {
        "subject": certificate.subject,
        "issuer": certificate.issuer,
        "names": list(certificate.names),
        "not_before": certificate.not_before.isoformat(),
        "not_after": certificate.not_after.isoformat(),
        "days_left": _days_left(certificate),
    }


def describe_chain(tls: TlsStatus) -> str:
    """Return the certificate of a server for people, and who signed it."""
    if not tls.chain:
        return "its certificate cannot be shown"
    first = tls.chain[0]
    names = listed(first.names) or "no names"
    # The issuer of the last one is what a truststore must have.
    signers = [each.issuer for each in tls.chain if each.issuer != each.subject]
    signed = "self-signed" if not signers else f"issued by {' < '.join(dict.fromkeys(signers))}"
    return f"certificate {first.subject or '(no subject)'} for {names}, {signed}, {_validity(first)}"


def _accepted(address: str, options: ConnectionOptions, tls: TlsStatus, facts: dict[str, Any]) -> Finding:
    text = f"{address}: {tls.version}, {tls.cipher}; {describe_chain(tls)}"
    judged = list(tls.chain)
    own = tls_context(options.tls).own
    if own is not None:
        facts["client_certificate"] = certificate_facts(own)
        if tls.asks_for_certificate is False:
            text += f"; the client certificate {own.subject} is not asked for"
        else:
            text += f"; this client shows {own.subject}, {_validity(own)}"
            judged.append(own)
    if any(_days_left(each) < _SOON_DAYS for each in judged):
        remedy = "Renew the certificate that ends soon: of the broker, of its authority, or of this client."
        return Finding("tls", FindingStatus.WARNING, f"{text}.", remedy, facts)
    return Finding("tls", FindingStatus.OK, f"{text}.", facts=facts)


def _refused(tls: TlsStatus, error: ConnectorError, facts: dict[str, Any]) -> Finding:
    """Return the finding of a failed handshake: its cause, by `_client/client/tls/`, and the certificates."""
    if isinstance(error, OptionError):
        return Finding("tls", FindingStatus.FAILED, error.message, error.hint, {**facts, **error.parameters})
    cause = error.__cause__
    if isinstance(cause, ssl.SSLCertVerificationError):
        facts["option"] = _SERVERS if cause.verify_code in _NAME_MISMATCH else _TRUSTSTORE
    elif error.condition == "TLS_CLIENT_CERTIFICATE_REFUSED":
        facts["option"] = _KEYSTORE
    found = ", ".join(part for part in (tls.version, describe_chain(tls)) if part)
    return Finding("tls", FindingStatus.FAILED, f"{error.message} Found: {found}.", error.hint, facts)


def _silent(server: Server, options: ConnectionOptions) -> Finding:
    address = address_of(*server)
    return Finding(
        "tls",
        FindingStatus.FAILED,
        f"{address} accepts connections, but speaks neither Kafka's protocol nor TLS: it is silent, or closes them.",
        f"Name the port of a Kafka listener in {_SERVERS}; if it is one, look at the broker's log: it may be starting, "
        "overloaded, or behind a proxy that has no way to it.",
        {"server": address, "listener": None, "option": _SERVERS, "security_protocol": options.security_protocol},
    )


def _validity(certificate: ParsedCertificate) -> str:
    days = _days_left(certificate)
    when = shown_time(certificate.not_after)
    return f"expired {-days} days ago ({when})" if days < 0 else f"expires in {days} days ({when})"


def _days_left(certificate: ParsedCertificate) -> int:
    return int((certificate.not_after - datetime.now(timezone.utc)).total_seconds() / 86_400)
