"""A real broker where who has no password may do all, and alice what she is granted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark_kafka.testing import EmbeddedKafka, Listener

PASSWORD = "correct-horse"  # noqa: S105 - of a broker that lives for a test
PLAIN_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


@contextmanager
def guarded_broker(version: str) -> Iterator[tuple[EmbeddedKafka, int, int]]:
    """Run the broker; yield it with its port without a password, and the one for alice."""
    listener = Listener("SASL_PLAINTEXT", mechanisms=("PLAIN",))
    with EmbeddedKafka(version, listeners=[listener], users={"alice": PASSWORD}, authorizer=True) as kafka:
        plain, sasl = (int(kafka.address(name).rpartition(":")[2]) for name in ("PLAINTEXT", "SASL_PLAINTEXT"))
        yield kafka, plain, sasl
