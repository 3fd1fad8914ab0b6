"""Errors of TLS, with what the other side's certificate and alert show about the cause. Pure."""

from __future__ import annotations

import re
import ssl
from typing import TYPE_CHECKING

from pyspark_kafka._client.client.tls.certificates import shown_time
from pyspark_kafka.errors import DeadlineError, TransportError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from pyspark_kafka._client.client.tls.certificates import ParsedCertificate
    from pyspark_kafka._client.client.tls.contexts import TlsContext
    from pyspark_kafka._client.options import ConnectionOptions

# Results of OpenSSL's verification (x509_vfy.h).
NOT_YET_VALID, EXPIRED, OTHER_NAME, OTHER_ADDRESS = 9, 10, 62, 64
_UNKNOWN_AUTHORITY = (2, 18, 19, 20, 21)
# What TLS says of the client's certificate (RFC 8446, 6.2), and what it means for the user.
_ALERTS = {
    "CERTIFICATE_REQUIRED": "none was shown",
    "BAD_CERTIFICATE": "it is missing or damaged",
    "UNSUPPORTED_CERTIFICATE": "it is of a kind that the broker does not support",
    "CERTIFICATE_REVOKED": "it was revoked",
    "CERTIFICATE_EXPIRED": "it has expired, or is not valid yet",
    "CERTIFICATE_UNKNOWN": "the broker could not accept it; it may be unknown or expired there",
    "UNKNOWN_CA": "the broker does not trust its issuer",
    "ACCESS_DENIED": "the broker refused whom it is for",
}
_VERSION_PROBLEMS = ("PROTOCOL_VERSION", "UNSUPPORTED_PROTOCOL", "NO_PROTOCOLS_AVAILABLE", "VERSION_TOO_LOW")
_CIPHER_PROBLEMS = ("HANDSHAKE_FAILURE", "NO_SHARED_CIPHER", "NO_CIPHERS_AVAILABLE", "INSUFFICIENT_SECURITY")
_NOT_TLS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG", "RECORD_LAYER_FAILURE")
_SHOWN_NAMES = 10


def certificate_rejected(
    address: str,
    host: str,
    error: ssl.SSLCertVerificationError,
    chain: Sequence[ParsedCertificate],
    trusted: Sequence[str] | None,
    now: datetime,
) -> TransportError:
    """Build the error for a broker's certificate that this side did not accept.

    Args:
        address: the broker's.
        host: the name that the certificate was to hold.
        error: of OpenSSL.
        chain: what the broker sent, its own certificate first; empty if that is not known.
        trusted: the subjects of the truststore; None if the system's authorities are trusted.
        now: the time of this machine.
    """
    code = getattr(error, "verify_code", 0)
    reason = getattr(error, "verify_message", "") or str(error)
    hint = "Check kafka.ssl.truststore.location, and the certificate of the broker."
    if code in (EXPIRED, NOT_YET_VALID):
        found = next((each for each in chain if each.lifetime_problem(now)), None)
        which = "" if found is None else f" '{found.subject}' {found.lifetime_problem(now)}."
        if chain and found is None:
            which = " It is a certificate of the truststore or of the system, which signed the broker's."
        text = f"{reason}.{which} The clock of this machine says {shown_time(now)}"
        hint = "Renew that certificate, or correct the clock of this machine."
    elif code in (OTHER_NAME, OTHER_ADDRESS):
        text = f"it is not for '{host}', the name that this client used"
        if chain:
            names = chain[0].names
            shown = ", ".join(f"'{name}'" for name in names[:_SHOWN_NAMES]) + ("…" if len(names) > _SHOWN_NAMES else "")
            text += f", but for {shown}" if names else f"; it holds no host names at all ({chain[0].subject})"
        hint = (
            "Use a name that the certificate holds in kafka.bootstrap.servers and in the brokers' advertised.listeners,"
            " or renew it with this name."
        )
    elif code in _UNKNOWN_AUTHORITY:
        text = _unknown_authority(reason, chain, trusted)
        hint = (
            "Set kafka.ssl.truststore.location to a file with the certificate of that authority (PEM, PKCS12 or JKS), "
            "or kafka.ssl.truststore.certificates to its text."
            if trusted is None
            else "Add the certificate of that authority to what kafka.ssl.truststore.location or "
            "kafka.ssl.truststore.certificates names."
        )
    else:
        text = reason.rstrip(".")
    return TransportError(
        f"The certificate of {address} was not accepted: {text}.",
        condition="TLS_CERTIFICATE_REJECTED",
        hint=hint,
        parameters={"broker": address, "reason": reason},
    )


def _unknown_authority(reason: str, chain: Sequence[ParsedCertificate], trusted: Sequence[str] | None) -> str:
    if chain and chain[0].is_self_signed:
        text = f"'{chain[0].subject}' is self-signed, and is not trusted"
    elif chain:
        # As far as the broker sent it: each is signed by the next.
        issuer = chain[0].issuer
        for each in chain[1:]:
            if each.subject == issuer:
                issuer = each.issuer
        text = f"it is signed by '{issuer}', which is not trusted"
    else:
        text = reason
    if trusted is None:
        return f"{text}. Trusted are the authorities of the system, because no truststore is given"
    shown = ", ".join(f"'{subject}'" for subject in trusted[:_SHOWN_NAMES]) + ("…" if len(trusted) > 10 else "")
    return f"{text}. The truststore has {shown}"


def unencrypted_warning(options: ConnectionOptions) -> str:
    """Return when a listener without TLS may be used instead, and what that costs, up to the option to set."""
    mechanism = "" if options.login is None else options.login.mechanism
    login = {"PLAIN": "the password and ", "OAUTHBEARER": "the token and ", "AWS_MSK_IAM": "the token and "}
    return (
        f"Without TLS {login.get(mechanism, '')}all records can be read and changed on the way; only if whoever runs "
        "the cluster says that this listener is meant"
    )


def handshake_silent(address: str, options: ConnectionOptions, timeout_ms: float) -> DeadlineError:
    """Build the error for a server that accepts the connection, and does not complete the TLS handshake in time."""
    return DeadlineError(
        f"{address} accepted the connection, but did not complete the TLS handshake within {timeout_ms:.0f} ms. It may "
        "be overloaded, or not a TLS listener.",
        condition="BROKER_SILENT",
        hint=f"Check the address and kafka.security.protocol (now '{options.security_protocol}').",
        retriable=True,
        parameters={"broker": address},
    )


def handshake_failed(
    address: str, options: ConnectionOptions, error: OSError, context: TlsContext | None, now: datetime
) -> TransportError:
    """Build the error for a TLS handshake that failed for another reason than the broker's certificate.

    With TLS 1.3 a broker refuses the client's certificate after the handshake, when the first response is due.

    Args:
        address: the broker's.
        options: what the user chose.
        error: of the socket or of OpenSSL.
        context: with the client's certificate; None if that is not known.
        now: the time of this machine.
    """
    reason = re.sub(r"[^A-Z0-9]+", "_", f"{getattr(error, 'reason', '') or ''} {error}".upper())
    alert = next((name for name in _ALERTS if f"ALERT_{name}" in reason), "")
    if alert:
        return _client_certificate_refused(address, alert, error, context, now)
    allowed = " or ".join(options.tls.versions)
    if any(name in reason for name in _VERSION_PROBLEMS):
        text = f"{address} offers no version of TLS that is allowed here ({allowed})"
        hint = "Allow TLSv1.2 or TLSv1.3 in ssl.enabled.protocols of the broker; older versions are not safe."
        if len(options.tls.versions) == 1:
            hint = "Check kafka.ssl.enabled.protocols, kafka.ssl.protocol and kafka.ssl.cipher.suites."
    elif any(name in reason for name in _CIPHER_PROBLEMS):
        text = (
            f"{address} and this client share no cipher suite, or the broker asks for a client certificate: "
            f"handshake failure ({error})"
        )
        hint = "Check ssl.cipher.suites of the broker and kafka.ssl.cipher.suites, and kafka.ssl.keystore.location."
    elif any(name in reason for name in _NOT_TLS):
        text = f"{address} sent bytes that are not TLS ({error}). It is probably not a TLS listener, or a web server"
        hint = (
            f"Name the port of the listener with TLS in kafka.bootstrap.servers. {unencrypted_warning(options)}, set "
            f"kafka.security.protocol to {'SASL_PLAINTEXT' if options.uses_sasl else 'PLAINTEXT'} (now "
            f"'{options.security_protocol}')."
        )
    elif "EXCESSIVE_MESSAGE_SIZE" in reason:
        text = f"{address} sent more certificates than a client takes ({error})"
        hint = "Check the address in kafka.bootstrap.servers, and the certificate chain of the broker."
    else:
        return TransportError(
            f"The TLS handshake with {address} failed: {error}. This often means that the listener is not a TLS "
            "listener, that it asks for a client certificate, or that the broker is starting or stopping.",
            condition="TLS_HANDSHAKE_FAILED",
            hint=f"Check kafka.security.protocol (now '{options.security_protocol}') and the port; for a client "
            "certificate set kafka.ssl.keystore.location.",
            # A broker, or a load balancer before it, that stops in the middle of a handshake looks the same: it resets
            # the connection, or ends it, for which Python's ssl has two classes.
            retriable=isinstance(error, (ConnectionError, ssl.SSLEOFError, ssl.SSLZeroReturnError)),
            parameters={"broker": address, "reason": error},
        )
    return TransportError(
        f"The TLS handshake with {address} failed: {text}.",
        condition="TLS_HANDSHAKE_FAILED",
        hint=hint,
        parameters={"broker": address, "reason": error},
    )


def _client_certificate_refused(
    address: str, alert: str, error: OSError, context: TlsContext | None, now: datetime
) -> TransportError:
    own = None if context is None else context.own
    if own is None:
        text = f"{address} asks for a client certificate, and none is given"
        hint = (
            "Set kafka.ssl.keystore.location to the store with the client's certificate and private key, or "
            "kafka.ssl.keystore.key and kafka.ssl.keystore.certificate.chain to their texts."
        )
    else:
        option = "" if context is None else context.own_option
        text = (
            f"{address} refused the client certificate '{own.subject}' of option '{option}': {_ALERTS[alert]}. It is "
            f"issued by '{own.issuer}' and "
            + (own.lifetime_problem(now) or f"is valid until {shown_time(own.not_after)}")
        )
        hint = (
            f"Renew the certificate of {option}."
            if own.lifetime_problem(now)
            else f"Set {option} to a certificate whose issuer is in the truststore of the broker."
        )
    return TransportError(
        f"{text} (TLS alert {alert.lower()}).",
        condition="TLS_CLIENT_CERTIFICATE_REFUSED",
        hint=hint,
        parameters={"broker": address, "alert": alert.lower(), "reason": error},
    )
