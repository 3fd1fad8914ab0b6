"""The `kafka.` options that have no effect here, or are refused: each with the reason and what to do instead.

Data only. A test compares the list of all properties of Java's clients with this table and the tables of `kafka_used`
and `security_used`: none may be unknown.
"""

from __future__ import annotations

from pyspark_kafka._client.options.catalogue.option import EVERYWHERE, Option, Status
from pyspark_kafka._client.options.catalogue.parity import IGNORED, PASSED_ON, REFUSED_THERE
from pyspark_kafka._client.options.parse import scalars

PREFIX = "kafka."


def _no_effect(reason: str, *names: str) -> tuple[Option, ...]:
    return tuple(
        Option(PREFIX + name, reason, PASSED_ON, no_effect_in=EVERYWHERE, status=Status.NO_EFFECT) for name in names
    )


def _refused(
    reason: str, *names: str, parity: str = PASSED_ON, secret: bool = False, status: Status = Status.REFUSED
) -> tuple[Option, ...]:
    return tuple(Option(PREFIX + name, reason, parity, secret=secret, status=status) for name in names)


_VALIDATORS = ("DefaultJwtValidator", "ClientJwtValidator")
_NO_GROUP = "this connector does not use consumer groups; Spark decides which task reads what"
_NO_JAVA_TLS = "TLS comes from OpenSSL, not from Java"

NO_EFFECT_PROPERTIES: tuple[Option, ...] = (
    *_no_effect(
        _NO_GROUP,
        "auto.commit.interval.ms",
        "group.instance.id",
        "group.protocol",
        "group.remote.assignor",
        "heartbeat.interval.ms",
        "max.poll.interval.ms",
        "partition.assignment.strategy",
        "session.timeout.ms",
        "share.acknowledgement.mode",
        "share.acquire.mode",
    ),
    *_no_effect("records are read as whole record batches", "max.poll.records"),
    *_no_effect("reading never creates a topic", "allow.auto.create.topics"),
    *_no_effect("internal topics are never part of a pattern", "exclude.internal.topics"),
    *_no_effect(
        "Java's client metrics do not exist here",
        "enable.metrics.push",
        "metric.reporters",
        "metrics.num.samples",
        "metrics.recording.level",
        "metrics.sample.window.ms",
    ),
    *_no_effect("all addresses of a host are tried", "client.dns.lookup"),
    *_no_effect(
        "connections are opened when they are needed, with the delays of kafka.retry.backoff.ms",
        "reconnect.backoff.ms",
        "reconnect.backoff.max.ms",
        "socket.connection.setup.timeout.max.ms",
        "metadata.max.idle.ms",
        "metadata.recovery.strategy",
        "metadata.recovery.rebootstrap.trigger.ms",
    ),
    *_no_effect(
        _NO_JAVA_TLS,
        "ssl.keymanager.algorithm",
        "ssl.trustmanager.algorithm",
        "ssl.provider",
        "ssl.secure.random.implementation",
    ),
    *_no_effect(
        "brokers check it, not clients",
        "sasl.oauthbearer.clock.skew.seconds",
        "sasl.oauthbearer.expected.audience",
        "sasl.oauthbearer.expected.issuer",
        "sasl.oauthbearer.jwks.endpoint.refresh.ms",
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
        "sasl.oauthbearer.jwks.endpoint.url",
    ),
    Option(
        "kafka.sasl.oauthbearer.jwt.validator.class",
        "claims of tokens are checked as Java's ClientJwtValidator does",
        PASSED_ON,
        parse=scalars.choice(
            {f"org.apache.kafka.common.security.oauthbearer.{name}": name for name in _VALIDATORS}, ignore_case=False
        ),
        no_effect_in=EVERYWHERE,
        status=Status.NO_EFFECT,
    ),
    *_no_effect(
        "the library of Kerberos gets and renews tickets",
        "sasl.kerberos.kinit.cmd",
        "sasl.kerberos.min.time.before.relogin",
        "sasl.kerberos.ticket.renew.jitter",
        "sasl.kerberos.ticket.renew.window.factor",
    ),
    *_no_effect("all rows of a task are available: no record batch waits for more", "linger.ms"),
    *_no_effect(
        "records without a key go to one partition for each batch, in turn",
        "partitioner.adaptive.partitioning.enable",
        "partitioner.availability.timeout.ms",
    ),
    Option(
        "kafka.retries",
        "a failed request is retried until kafka.delivery.timeout.ms has passed",
        PASSED_ON,
        parse=scalars.whole_number(1, scalars.INT32_MAX, "retries"),
        no_effect_in=EVERYWHERE,
        status=Status.NO_EFFECT,
    ),
)

_JAVA_CODE = "It names Java code, and no Java client runs here."
_BYTES_IN = (
    "Keys and values are read as bytes. Remove it, and decode the columns key and value with DataFrame functions."
)
_BYTES_OUT = (
    "Keys and values are written as they are. Remove it, and use strings or binary in the columns key and value."
)

REFUSED_PROPERTIES: tuple[Option, ...] = (
    *_refused(
        "The stream's own checkpoint says where to continue. Set startingOffsets to earliest or latest to say where a "
        "new query starts.",
        "auto.offset.reset",
        parity=REFUSED_THERE,
    ),
    *_refused(
        "Spark's checkpoint holds the offsets, never a consumer group. Remove it.",
        "enable.auto.commit",
        parity=REFUSED_THERE,
    ),
    *_refused(_BYTES_IN, "key.deserializer", "value.deserializer", parity=REFUSED_THERE),
    *_refused(_BYTES_OUT, "key.serializer", "value.serializer", parity=REFUSED_THERE),
    *_refused(f"{_JAVA_CODE} Remove it.", "interceptor.classes", parity=REFUSED_THERE),
    *_refused(f"{_JAVA_CODE} Remove it.", "security.providers", "ssl.engine.factory.class"),
    *_refused(f"{_JAVA_CODE} Remove it; logins here need none.", "sasl.login.class"),
    *_refused(
        f"{_JAVA_CODE} Set the partition of a row in the column partition; otherwise keys are distributed as by Java's "
        "default partitioner.",
        "partitioner.class",
    ),
    *_refused(
        "Java resolves references in values with it; here they would be taken literally. Set the values themselves.",
        "config.providers",
    ),
    *_refused(
        "The connector controls transactions. Remove it.",
        "transaction.two.phase.commit.enable",
    ),
)

LATER_PROPERTIES: tuple[Option, ...] = (
    *_refused("Set the partition of a row in the column partition.", "partitioner.ignore.keys", status=Status.LATER),
    *_refused(
        "Assertions (RFC 7523) are not made here. Set kafka.sasl.oauthbearer.token.callable to a function that gets "
        "the token, package.module:function.",
        *(
            f"sasl.oauthbearer.assertion.{name}"
            for name in (
                "algorithm",
                "claim.aud",
                "claim.exp.seconds",
                "claim.iss",
                "claim.jti.include",
                "claim.nbf.seconds",
                "claim.sub",
                "file",
                "private.key.file",
                "private.key.passphrase",
                "template.file",
            )
        ),
        secret=True,
        status=Status.LATER,
    ),
)


def _renamed(reason: str, *names: str, secret: bool = False) -> tuple[Option, ...]:
    return _refused(reason, *names, parity=IGNORED, secret=secret)


_JAAS_HINT = (
    "Java's name is kafka.sasl.jaas.config: org.apache.kafka.common.security.scram.ScramLoginModule required "
    'username="<user>" password="<password>"; (or plain.PlainLoginModule for PLAIN).'
)

# Names of librdkafka (confluent-kafka), which users bring from there.
REPLACED_PROPERTIES: tuple[Option, ...] = (
    *_renamed(_JAAS_HINT, "sasl.username", "sasl.password", secret=True),
    *_renamed("Java's name is kafka.sasl.mechanism.", "sasl.mechanisms"),
    *_renamed("Java's name is kafka.ssl.truststore.location.", "ssl.ca.location"),
    *_renamed("Java's name is kafka.ssl.truststore.certificates.", "ssl.ca.pem", secret=True),
    *_renamed(
        "Java's name is kafka.ssl.keystore.certificate.chain: set it to file:PATH.",
        "ssl.certificate.location",
        secret=True,
    ),
    *_renamed(
        "Java's name is kafka.ssl.keystore.key: set it to file:PATH.",
        "ssl.key.location",
        secret=True,
    ),
    *_renamed("Java's name is kafka.ssl.keystore.certificate.chain.", "ssl.certificate.pem", secret=True),
    *_renamed("Java's name is kafka.ssl.keystore.key.", "ssl.key.pem", secret=True),
    *_renamed(
        "Certificates are always verified: name the authority of the brokers in kafka.ssl.truststore.location.",
        "enable.ssl.certificate.verification",
    ),
    *_renamed("Java's name is kafka.bootstrap.servers.", "metadata.broker.list"),
    *_renamed("Java's name is kafka.acks.", "request.required.acks"),
    *_renamed("Java's name is kafka.compression.type.", "compression.codec"),
    *_renamed("Java's name is kafka.max.request.size.", "message.max.bytes"),
    *_renamed("Java's name is kafka.delivery.timeout.ms.", "message.timeout.ms"),
    *_renamed("Java's name is kafka.max.in.flight.requests.per.connection.", "max.in.flight"),
    *_renamed("Java's name is kafka.fetch.max.wait.ms.", "fetch.wait.max.ms"),
    *_renamed("Java's name is kafka.max.partition.fetch.bytes.", "fetch.message.max.bytes"),
    *_renamed("Java's name is kafka.socket.connection.setup.timeout.ms.", "socket.timeout.ms"),
)

ANSWERED_PROPERTIES: tuple[Option, ...] = (
    *NO_EFFECT_PROPERTIES,
    *REFUSED_PROPERTIES,
    *LATER_PROPERTIES,
    *REPLACED_PROPERTIES,
)
