"""The `kafka.` options of TLS and SASL that have an effect: Java's client properties, each with what it does here.

Data only. The options of `kafka_answered` have no effect.
"""

from __future__ import annotations

from functools import partial

from pyspark_kafka._client.options.catalogue.option import EVERYWHERE, Option
from pyspark_kafka._client.options.catalogue.parity import SAME, STORE_TYPE
from pyspark_kafka._client.options.parse import scalars, tls
from pyspark_kafka._client.options.parse.jaas import jaas_config
from pyspark_kafka._client.options.values.security import LOGIN_MODULES

SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
SASL_MECHANISMS = tuple(LOGIN_MODULES)

_shared = partial(Option, scopes=EVERYWHERE)


def _mechanism(raw: str) -> object:
    name = raw.strip().upper()
    if name in SASL_MECHANISMS:
        return name
    shown = scalars.shown_word(raw, *SASL_MECHANISMS)
    raise ValueError(f"must be one of {', '.join(SASL_MECHANISMS)} (others need Java code); got {shown}")


def _host_check(raw: str) -> bool:
    # Blanks alone are none of the two: Java's clients connect with no such algorithm either.
    if raw and raw.strip().lower() != "https":
        raise ValueError(f"must be https, or empty to accept any host name; got {scalars.shown_word(raw, 'https')}")
    return bool(raw)


SECURITY_PROPERTIES: tuple[Option, ...] = (
    _shared(
        "kafka.security.protocol",
        "Whether connections are encrypted (SSL) and authenticated (SASL).",
        parity=SAME,
        field="connection.security_protocol",
        parse=scalars.words(*SECURITY_PROTOCOLS),
        kind=", ".join(SECURITY_PROTOCOLS),
    ),
    _shared(
        "kafka.sasl.mechanism",
        "How to log in, with a SASL security protocol.",
        parity="Java takes others with Java code, and `GSSAPI` by default",
        resolved_by="login",
        parse=_mechanism,
        kind=", ".join(SASL_MECHANISMS),
        default_doc="`GSSAPI` with the login module of Kerberos, else required with SASL",
    ),
    _shared(
        "kafka.sasl.jaas.config",
        "The login module with its settings, in the form of Java clients: "
        '`org.apache.kafka.common.security.scram.ScramLoginModule required username="…" password="…";`, or '
        "`…security.plain.PlainLoginModule…`; with `tokenauth=true`, id and key of a delegation token. Kerberos: "
        '`com.sun.security.auth.module.Krb5LoginModule required keyTab="…" principal="…";`, or '
        "`useTicketCache=true`. With OAUTHBEARER and AWS_MSK_IAM, the module alone is enough.",
        parity="same for the login modules named here; their unknown settings are refused",
        resolved_by="login",
        parse=jaas_config,
        kind="JAAS configuration",
        default_doc="required with PLAIN and SCRAM",
        secret=True,
    ),
    _shared(
        "kafka.sasl.kerberos.service.name",
        "The first part of the brokers' principals, with GSSAPI.",
        parity="required there, unless the JAAS configuration has it",
        resolved_by="login",
        parse=scalars.text,
        default_doc="`kafka`",
    ),
    _shared(
        "kafka.ssl.truststore.location",
        "File of the certificates to trust, PEM, PKCS12 or JKS, on every machine that runs the driver or an executor. "
        "It is read again for each connection, so that a replaced file needs no restart.",
        parity=SAME,
        resolved_by="tls",
        parse=scalars.location("kafka.ssl.truststore.certificates"),
        kind="file",
        default_doc="the system's certificates",
    ),
    _shared(
        "kafka.ssl.truststore.type",
        "The type of `kafka.ssl.truststore.location`. PKCS12 needs the extra `stores`.",
        parity=STORE_TYPE,
        resolved_by="tls",
        parse=tls.store_type,
        kind="PEM, PKCS12, JKS",
        default_doc="by the content",
    ),
    _shared(
        "kafka.ssl.truststore.password",
        "The password of a PKCS12 or JKS truststore.",
        parity=SAME,
        resolved_by="tls",
        parse=scalars.secret,
        default_doc="none; a JKS store is then not checked for damage",
        secret=True,
    ),
    _shared(
        "kafka.ssl.truststore.certificates",
        "The certificates to trust as PEM text, instead of a file. Line ends may be written as `\\n`.",
        parity=SAME,
        resolved_by="tls",
        parse=scalars.secret,
        kind="PEM",
        default_doc="the system's certificates",
        secret=True,
    ),
    _shared(
        "kafka.ssl.keystore.location",
        "File with the client's certificate chain and its private key, PEM, PKCS12 or JKS, on every machine. It is "
        "read again for each connection. Of several keys the first is used.",
        parity=SAME,
        resolved_by="tls",
        parse=scalars.location("kafka.ssl.keystore.key"),
        kind="file",
        default_doc="no client certificate",
    ),
    _shared(
        "kafka.ssl.keystore.type",
        "The type of `kafka.ssl.keystore.location`. PKCS12 needs the extra `stores`.",
        parity=STORE_TYPE,
        resolved_by="tls",
        parse=tls.store_type,
        kind="PEM, PKCS12, JKS",
        default_doc="by the content",
    ),
    _shared(
        "kafka.ssl.keystore.password",
        "The password of a PKCS12 or JKS keystore.",
        parity=SAME,
        resolved_by="tls",
        parse=scalars.secret,
        default_doc="none",
        secret=True,
    ),
    _shared(
        "kafka.ssl.keystore.key",
        "The client's private key as PEM text, instead of a file, or better a reference to it: Spark shows the text in "
        "plans and in its event log. Line ends may be written as `\\n`.",
        parity=SAME,
        resolved_by="tls",
        parse=scalars.secret,
        kind="PEM",
        default_doc="no client certificate",
        secret=True,
    ),
    _shared(
        "kafka.ssl.keystore.certificate.chain",
        "The certificates of `kafka.ssl.keystore.key` as PEM text, its own first.",
        parity=SAME,
        resolved_by="tls",
        parse=scalars.secret,
        kind="PEM",
        default_doc="required with the key",
        secret=True,
    ),
    _shared(
        "kafka.ssl.key.password",
        "The password of the private key, if it is encrypted, or in a JKS store has another password than the store.",
        parity=SAME,
        field="tls.key_password",
        parse=scalars.secret,
        default_doc="the key is not encrypted, or has the store's password",
        secret=True,
    ),
    _shared(
        "kafka.ssl.enabled.protocols",
        "The versions of TLS that may be agreed on. Older ones than TLSv1.2 are refused.",
        parity="same; older versions than TLSv1.2 are refused",
        resolved_by="tls",
        parse=tls.versions,
        kind="list of versions",
        default_doc="`TLSv1.2,TLSv1.3`",
    ),
    _shared(
        "kafka.ssl.protocol",
        "The newest version of TLS that may be agreed on: TLSv1.2, TLSv1.3, or TLS for both.",
        parity="same; older versions than TLSv1.2 are refused",
        resolved_by="tls",
        parse=tls.version,
        kind="TLSv1.2, TLSv1.3, TLS",
        default_doc="TLSv1.3",
    ),
    _shared(
        "kafka.ssl.cipher.suites",
        "The cipher suites of TLS 1.2, in Java's names. A version of TLS without a listed suite is not used. "
        "OpenSSL's three suites of TLS 1.3 cannot be chosen among.",
        parity="same for TLS 1.2; weak suites are refused",
        resolved_by="tls",
        parse=tls.cipher_suites,
        kind="list of suites",
        default_doc="OpenSSL's",
    ),
    _shared(
        "kafka.ssl.endpoint.identification.algorithm",
        "`https` checks that a broker's certificate is for its host name; empty accepts any name.",
        parity=SAME,
        field="tls.check_hostname",
        parse=_host_check,
        kind="`https` or empty",
        default_doc="`https`",
    ),
)
