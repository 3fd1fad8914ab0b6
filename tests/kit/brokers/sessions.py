"""A real broker whose sessions end: users log in with PLAIN and SCRAM, and again after some seconds (KIP-368)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient

from kit.brokers.two_brokers import start_on_free_ports
from kit.reading import options_for
from pyspark_kafka._client.options import ConnectionOptions, PlainLogin, ScramLogin, Secret
from pyspark_kafka.testing import EmbeddedKafka
from pyspark_kafka.testing.administration import set_scram_passwords
from pyspark_kafka.testing.jars import DEFAULT_VERSION

PASSWORD = "correct-horse"  # noqa: S105 - of a broker that lives for a test
_MODULES = "org.apache.kafka.common.security"
_PLAIN, _SCRAM = f"{_MODULES}.plain.PlainLoginModule", f"{_MODULES}.scram.ScramLoginModule"


@dataclass(frozen=True)
class SessionsBroker:
    """The broker; `kafka.bootstrap_servers` needs no login, `servers` does."""

    kafka: EmbeddedKafka
    servers: str

    def options(self, mechanism: str = "PLAIN", *, password: str = PASSWORD) -> dict[str, str]:
        """Return the options of alice, as users set them."""
        module = _PLAIN if mechanism == "PLAIN" else _SCRAM
        return {
            "kafka.bootstrap.servers": self.servers,
            "kafka.security.protocol": "SASL_PLAINTEXT",
            "kafka.sasl.mechanism": mechanism,
            "kafka.sasl.jaas.config": f'{module} required username="alice" password="{password}";',
        }

    def connection(
        self, mechanism: str = "PLAIN", *, user: str = "alice", password: str = PASSWORD, **changes: Any
    ) -> ConnectionOptions:
        """Return the same, resolved."""
        secret = Secret(password)
        login = PlainLogin(user, secret) if mechanism == "PLAIN" else ScramLogin(user, secret, mechanism)
        return options_for(self.servers, security_protocol="SASL_PLAINTEXT", login=login, **changes)

    def ended_connections(self) -> list[str]:
        """Return what the broker has logged of connections that it closed because their session had ended."""
        assert self.kafka._home is not None
        log = (self.kafka._home / "broker.log").read_text(errors="replace")
        return [line for line in log.splitlines() if "Disconnecting expired channel" in line]

    def _log_ended_connections(self) -> None:
        admin: Any = KafkaAdminClient(bootstrap_servers=self.kafka.bootstrap_servers)
        try:
            logger = ConfigResource(ConfigResourceType.BROKER_LOGGER, "1", {"kafka.network.Processor": "DEBUG"})
            admin.alter_configs([logger], raise_on_unknown=False, incremental=True)
        finally:
            admin.close()

    def set_password(self, password: str, user: str = "alice") -> None:
        """Set the password with which a user logs in by SCRAM."""
        set_scram_passwords(self.kafka.bootstrap_servers, {user: password}, ["SCRAM-SHA-256", "SCRAM-SHA-512"])


@contextmanager
def sessions_broker(
    lifetime_ms: int, properties: Mapping[str, str] | None = None, version: str = DEFAULT_VERSION
) -> Iterator[SessionsBroker]:
    """Run the broker; a session lasts `lifetime_ms` from each login on, for ever with 0."""

    def broker_on(plain: int, sasl: int, controller: int) -> EmbeddedKafka:
        addresses = f"PLAINTEXT://127.0.0.1:{plain},SASL_PLAINTEXT://127.0.0.1:{sasl}"
        listener = "listener.name.sasl_plaintext"
        settings = {
            "listeners": f"{addresses},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": addresses,
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
            f"{listener}.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
            f"{listener}.plain.sasl.jaas.config": f'{_PLAIN} required user_alice="{PASSWORD}";',
            f"{listener}.scram-sha-256.sasl.jaas.config": f"{_SCRAM} required;",
            f"{listener}.scram-sha-512.sasl.jaas.config": f"{_SCRAM} required;",
            "connections.max.reauth.ms": str(lifetime_ms),
            "delegation.token.secret.key": "of-a-broker-that-lives-for-a-test",
            **(properties or {}),
        }
        return EmbeddedKafka(version, port=plain, properties=settings)

    kafka, (_, sasl, _) = start_on_free_ports(3, broker_on)
    with kafka:
        broker = SessionsBroker(kafka, f"127.0.0.1:{sasl}")
        broker.set_password(PASSWORD)
        broker._log_ended_connections()
        yield broker
