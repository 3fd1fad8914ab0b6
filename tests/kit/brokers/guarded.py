"""A real broker where who has no password may do all, and alice what she is granted."""

from __future__ import annotations

import socket
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from pyspark_kafka.testing import EmbeddedKafka

if TYPE_CHECKING:
    from collections.abc import Iterator

PASSWORD = "correct-horse"  # noqa: S105 - of a broker that lives for a test
PLAIN_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


@contextmanager
def guarded_broker(version: str) -> Iterator[tuple[EmbeddedKafka, int, int]]:
    """Run the broker; yield it with its port without a password, and the one for alice."""
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(3)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        plain, sasl, controller = [int(each.getsockname()[1]) for each in sockets]
    addresses = f"PLAINTEXT://127.0.0.1:{plain},SASL_PLAINTEXT://127.0.0.1:{sasl}"
    properties = {
        "listeners": f"{addresses},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": addresses,
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "listener.name.sasl_plaintext.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{PLAIN_LOGIN} user_alice="{PASSWORD}";',
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    with EmbeddedKafka(version, port=plain, properties=properties) as kafka:
        yield kafka, plain, sasl
