"""Ways to log in and things to do with them: the cases of the matrix, and how each is done with a Spark session.

`docs/security-matrix.md` is written from what became of the cases.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from kit.fakes.token_endpoint import TokenEndpoint
from kit.fixtures.kerberos import REALM, keytab_of
from kit.fixtures.secured_broker import CLIENTS
from kit.programs.cli import invoke
from pyspark_kafka import check, continuous, delegation_tokens
from pyspark_kafka._ops.diagnosis.findings import FindingStatus
from pyspark_kafka.testing import EmbeddedKafka
from pyspark_kafka.testing.secured.listeners import jaas_line

USER = "alice"
VALUES = [b"one", b"two", b"three"]
CLASSIC, CONNECT = "classic", "Connect"
KERBEROS = "kerberos_kafka"
_JAAS = "kafka.sasl.jaas.config"
_TOKEN_URL = "kafka.sasl.oauthbearer.token.endpoint.url"  # noqa: S105 - the name of an option


@dataclass(frozen=True)
class Way:
    """One way to connect.

    Attributes:
        name: in the page.
        listener: of the broker.
        mechanism: of SASL.
        store: the form of certificates.
        broker: the fixture of the broker.
        more: builds options that the kit of users does not; it is called with what returns a fixture by its name.
    """

    name: str
    listener: str
    mechanism: str | None = None
    store: str = "PEM"
    broker: str = "secured_kafka"
    more: Callable[[Callable[[str], Any]], dict[str, str]] | None = None

    def options(self, fixture: Callable[[str], Any]) -> dict[str, str]:
        """Return the options of a query."""
        kafka: EmbeddedKafka = fixture(self.broker)
        user = None if self.listener == "SSL" else USER
        options = kafka.client_options(self.listener, user, mechanism=self.mechanism, store=self.store)
        if self.more:
            options.update(self.more(fixture))
        return {name: value for name, value in options.items() if value}


def _by_keytab(_: Callable[[str], Any]) -> dict[str, str]:
    keytab = keytab_of(USER, os.environ["KRB5_CONFIG"])
    login = {"useKeyTab": "true", "keyTab": str(keytab), "principal": f"{USER}@{REALM}"}
    return {_JAAS: jaas_line("GSSAPI", login)}


def _by_ticket(_: Callable[[str], Any]) -> dict[str, str]:
    return {_JAAS: jaas_line("GSSAPI", {"useTicketCache": "true"})}


def _by_endpoint(fixture: Callable[[str], Any]) -> dict[str, str]:
    endpoint: TokenEndpoint = fixture("token_endpoint")
    trusted = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(endpoint.trusted)}
    return {
        _TOKEN_URL: endpoint.url,
        "kafka.sasl.oauthbearer.client.credentials.client.id": USER,
        "kafka.sasl.oauthbearer.client.credentials.client.secret": CLIENTS[USER],
        _JAAS: jaas_line("OAUTHBEARER", trusted),
    }


def _by_delegation_token(fixture: Callable[[str], Any]) -> dict[str, str]:
    options = fixture("secured_kafka").client_options("SASL_SSL", USER, mechanism="SCRAM-SHA-512")
    return delegation_tokens.query_options(options, delegation_tokens.obtain(options))


def _by_function(fixture: Callable[[str], Any]) -> dict[str, str]:
    kafka: EmbeddedKafka = fixture("secured_kafka")
    place: Path = fixture("spark_modules")
    module = place / "matrix_tokens.py"
    if not module.exists():
        file = str(kafka.security.token_file(USER))
        module.write_text(f"import pathlib\n\n\ndef token():\n    return pathlib.Path({file!r}).read_text()\n")
    return {_TOKEN_URL: "", "kafka.sasl.oauthbearer.token.callable": "matrix_tokens:token"}


WAYS = (
    Way("TLS, no login", "SSL"),
    Way("mutual TLS, PEM files", "MTLS"),
    Way("mutual TLS, PEM in options", "MTLS", store="PEM-inline"),
    Way("mutual TLS, PKCS12", "MTLS", store="PKCS12"),
    Way("mutual TLS, JKS", "MTLS", store="JKS"),
    Way("PLAIN", "SASL_SSL", "PLAIN"),
    Way("SCRAM-SHA-256", "SASL_SSL", "SCRAM-SHA-256"),
    Way("SCRAM-SHA-512", "SASL_SSL", "SCRAM-SHA-512"),
    Way("SCRAM-SHA-512, delegation token", "SASL_SSL", "SCRAM-SHA-512", more=_by_delegation_token),
    Way("OAUTHBEARER, token endpoint", "SASL_SSL", "OAUTHBEARER", more=_by_endpoint),
    Way("OAUTHBEARER, token file", "SASL_SSL", "OAUTHBEARER"),
    Way("OAUTHBEARER, function", "SASL_SSL", "OAUTHBEARER", more=_by_function),
    Way("OAUTHBEARER, token not signed", "UNSIGNED"),
    Way("GSSAPI, keytab", "SASL_SSL", "GSSAPI", broker=KERBEROS, more=_by_keytab),
    Way("GSSAPI, ticket cache", "SASL_SSL", "GSSAPI", broker=KERBEROS, more=_by_ticket),
)


@dataclass(frozen=True)
class Task:
    """What a case does, from one topic to another, with the options of its way.

    Attributes:
        session: a classic session, or one of Spark Connect; None for what has no session.
        options: of the way.
        source: a topic with `VALUES`.
        target: an empty topic.
        place: a folder of its own.
    """

    session: SparkSession | None
    options: dict[str, str]
    source: str
    target: str
    place: Path


def same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return the values as they are; travels to the tasks of a continuous query."""
    for batch in batches:
        yield batch.select(["value"])


def run_batch(task: Task) -> None:
    """Read a topic and write another one, in one job."""
    rows = _spark(task).read.format("pyspark_kafka").options(**task.options, subscribe=task.source).load()
    rows.select("value").write.format("pyspark_kafka").options(**task.options, topic=task.target).mode("append").save()


def run_stream(task: Task, **options: str) -> None:
    """Read and write in micro-batches until all is written."""
    begin = {"subscribe": task.source, "startingOffsets": "earliest"}
    rows = _spark(task).readStream.format("pyspark_kafka").options(**task.options, **begin).load().select("value")
    end = {"topic": task.target, "checkpointLocation": str(task.place / "checkpoint"), **options}
    query = rows.writeStream.format("pyspark_kafka").options(**task.options, **end).trigger(availableNow=True).start()
    query.awaitTermination()
    error = query.exception()
    if error is not None:
        raise error


def run_exactly_once(task: Task) -> None:
    """Do the same, exactly once."""
    run_stream(task, deliveryGuarantee="exactly_once", commitTopic=f"commits-{task.target}")


def run_continuous(task: Task) -> None:
    """Read and write without micro-batches."""
    begin = {"subscribe": task.source, "startingOffsets": "earliest"}
    end = {"topic": task.target, "checkpointLocation": str(task.place / "checkpoint")}
    rows = continuous.read(_spark(task)).format("pyspark_kafka").options(**task.options, **begin).load()
    writer = rows.mapInArrow(same, "value binary").writeStream.format("pyspark_kafka").options(**task.options, **end)
    query = writer.trigger(continuous="200 milliseconds").start()
    try:
        query.processAllAvailable()
    finally:
        query.stop()
    error = query.exception()
    if error is not None:
        raise error


def run_admin(task: Task) -> None:
    """List transactions on the command line."""
    done = invoke("transactions", "list", "--config", str(properties_file(task)))
    assert done.exit_code == 0, done.output


def run_check(task: Task) -> None:
    """Judge the connection, on the driver and on a worker."""
    found = check({**task.options, "subscribe": task.source, "topic": task.target}, _spark(task))
    assert found.ok, [finding for finding in found.findings if finding.status is FindingStatus.FAILED]


def properties_file(task: Task) -> Path:
    """Write the options as a file of Kafka's own tools, and return its path."""
    file = task.place / "client.properties"
    lines = [f"{name.removeprefix('kafka.')}={_escape(value)}\n" for name, value in task.options.items()]
    file.write_text("".join(lines))
    return file


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n")


def _spark(task: Task) -> Any:
    assert task.session is not None
    return task.session


@dataclass(frozen=True)
class Use:
    """One thing that people do.

    Attributes:
        name: in the page.
        run: does it.
        writes: whether the target has `VALUES` then.
        sessions: of which kinds; with none it is the same for all.
        legend: what the page says of it, where the page does not know it anyway.
    """

    name: str
    run: Callable[[Task], None]
    writes: bool = True
    sessions: tuple[str, ...] = (CLASSIC, CONNECT)
    legend: str = ""


USES = (
    Use("batch", run_batch),
    Use("stream", run_stream),
    Use("exactly once", run_exactly_once),
    Use("continuous", run_continuous),
    Use("check", run_check, writes=False, legend="is `pyspark_kafka.check(options, spark)`."),
    Use("admin", run_admin, writes=False, sessions=(), legend="is `pyspark-kafka transactions list --config FILE`."),
)


@dataclass(frozen=True)
class Case:
    """One cell of the matrix; `session` is empty for what has none."""

    way: Way
    use: Use
    session: str

    def __str__(self) -> str:
        return ", ".join(filter(None, (self.way.name, self.use.name, self.session)))

    @property
    def quick(self) -> bool:
        """Whether it is in each run of the tests: each way and each use is, with both kinds of session.

        A way with a broker of its own is in none.
        """
        if self.way.broker != "secured_kafka":
            return False
        if not self.use.sessions:
            return True
        turn = WAYS.index(self.way) + USES.index(self.use)
        return turn % len(_SPARK_USES) == 0 and self.session == self.use.sessions[(turn // len(_SPARK_USES)) % 2]


_SPARK_USES = tuple(use for use in USES if use.sessions)
CASES = tuple(Case(way, use, session) for way in WAYS for use in USES for session in use.sessions or ("",))
USE_BY_NAME = {use.name: use for use in USES}
