"""The configuration of an embedded broker: properties file, logging file, command lines. Pure: text in, text out."""

from __future__ import annotations

import base64
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

HOST = "127.0.0.1"
NODE_ID = 1

# A JVM that is up soon: the first compiler only, and a collector without helper threads.
QUICK_JVM_FLAGS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
# A JVM that is fast once warm: what Kafka's own start script sets.
WARM_JVM_FLAGS = ("-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20")


@dataclass(frozen=True, slots=True)
class BrokerAddress:
    """The loopback ports of a broker that is its own controller.

    Attributes:
        port: of clients that neither encrypt nor authenticate.
        controller_port: of the controller.
        listener_ports: of the other listeners, by name.
    """

    port: int
    controller_port: int
    listener_ports: Mapping[str, int] = field(default_factory=dict)

    @property
    def bootstrap_servers(self) -> str:
        """The address for clients: `127.0.0.1:port`."""
        return f"{HOST}:{self.port}"


def build_properties(
    address: BrokerAddress,
    log_directory: Path,
    *,
    default_partitions: int = 1,
    overrides: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Build the server properties of a KRaft broker that is a cluster of one.

    Topics are never created by accident, nothing is deleted by age, internal topics are as small as they can be so that
    start and stop are quick, and a consumer group does not wait for more members.

    Args:
        address: the ports to listen on, loopback only.
        log_directory: where the records are kept.
        default_partitions: `num.partitions`.
        overrides: properties that are added, or replace those built here.
    """
    properties = {
        "process.roles": "broker,controller",
        "node.id": str(NODE_ID),
        "controller.quorum.voters": f"{NODE_ID}@{HOST}:{address.controller_port}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://{HOST}:{address.port},CONTROLLER://{HOST}:{address.controller_port}",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{address.port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SSL:SSL,"
        "SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL",
        "inter.broker.listener.name": "PLAINTEXT",
        "log.dirs": str(log_directory),
        "num.partitions": str(default_partitions),
        "auto.create.topics.enable": "false",
        "log.retention.ms": "-1",
        "log.retention.bytes": "-1",
        "group.initial.rebalance.delay.ms": "0",
        "offsets.topic.num.partitions": "1",
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.num.partitions": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.num.partitions": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        # A killed broker is let in again only after its previous session: 9 s by default.
        "broker.session.timeout.ms": "3000",
        "broker.heartbeat.interval.ms": "500",
        # Preallocated index files; the default of 10 MiB each makes a broker of many small topics slow and large.
        "log.index.size.max.bytes": str(1 << 20),
        # The cleaner reserves this at the start; the default is 128 MiB.
        "log.cleaner.dedupe.buffer.size": str(4 << 20),
    }
    properties.update(overrides or {})
    return properties


def to_properties_text(properties: Mapping[str, str]) -> str:
    r"""Write properties in the format of `java.util.Properties`, sorted by name.

    Example:
        >>> to_properties_text({"log.dirs": "C:\\data", "b": "1"})
        'b=1\nlog.dirs=C:\\\\data\n'
    """
    return "".join(f"{_escape(name, key=True)}={_escape(properties[name])}\n" for name in sorted(properties))


def _escape(text: str, *, key: bool = False) -> str:
    """Escape as `java.util.Properties.store` does: backslashes, line ends, separators of a key, non-ASCII."""
    written: list[str] = []
    for position, character in enumerate(text):
        if character == "\\":
            written.append("\\\\")
        elif character in "\n\r\t":
            written.append({"\n": "\\n", "\r": "\\r", "\t": "\\t"}[character])
        elif (character == " " and (key or position == 0)) or (key and character in "=:#!"):
            written.append(f"\\{character}")
        elif not " " <= character <= "~":
            encoded = character.encode("utf-16-be")
            written.extend(f"\\u{encoded[at : at + 2].hex()}" for at in range(0, len(encoded), 2))
        else:
            written.append(character)
    return "".join(written)


def new_cluster_id(new_uuid: Callable[[], uuid.UUID] = uuid.uuid4) -> str:
    """Return a random cluster id in Kafka's form: a UUID in URL-safe base64 without padding.

    Never one that begins with "-": a command line takes that for an option (`org.apache.kafka.common.Uuid.randomUuid`).
    """
    while (text := base64.urlsafe_b64encode(new_uuid().bytes).decode().rstrip("=")).startswith("-"):
        pass
    return text


def parse_cluster_id(text: str) -> str | None:
    r"""Read the cluster's id out of the `meta.properties` of a formatted data directory.

    Example:
        >>> parse_cluster_id("#\nnode.id=1\ncluster.id=abc\n")
        'abc'
    """
    for line in text.splitlines():
        name, _, value = line.partition("=")
        if name.strip() == "cluster.id":
            return value.strip()
    return None


def build_logging_text(version: str) -> tuple[str, str]:
    """Return the JVM flag that names the logging file and the file's text: everything from INFO up to standard output.

    Kafka 4 logs through log4j 2, Kafka 3 through log4j 1.
    """
    pattern = "%d{ISO8601} %p %m (%c)%n"
    if int(version.split(".", 1)[0]) >= 4:
        return (
            "-Dlog4j2.configurationFile={file}",
            (
                "status=error\n"
                "appender.out.type=Console\nappender.out.name=out\n"
                f"appender.out.layout.type=PatternLayout\nappender.out.layout.pattern={pattern}\n"
                "rootLogger.level=info\nrootLogger.appenderRef.out.ref=out\n"
            ),
        )
    return (
        "-Dlog4j.configuration=file:{file}",
        (
            "log4j.rootLogger=INFO, out\nlog4j.appender.out=org.apache.log4j.ConsoleAppender\n"
            "log4j.appender.out.layout=org.apache.log4j.PatternLayout\n"
            f"log4j.appender.out.layout.ConversionPattern={pattern}\n"
        ),
    )


def build_java_command(
    java: Path,
    classpath: str,
    main_class: str,
    arguments: tuple[str, ...],
    *,
    heap: str,
    flags: tuple[str, ...] = (),
) -> list[str]:
    """Build the command line of a Kafka program."""
    return [
        str(java),
        f"-Xmx{heap}",
        *flags,
        "-Djava.awt.headless=true",
        "-Djava.net.preferIPv4Stack=true",
        "-cp",
        classpath,
        main_class,
        *arguments,
    ]


def explain_log(log: str, lines: int = 12) -> str:
    """Return the lines of a broker's log from its first error on, without stack frames; else its last lines."""
    kept = [line for line in log.splitlines() if line.strip() and not line.startswith(("\tat ", "\t... "))]
    for position, line in enumerate(kept):
        if any(word in line for word in (" ERROR ", " FATAL ", "Exception", "Error:")):
            return "\n".join(kept[position : position + lines])
    return "\n".join(kept[-lines:])
