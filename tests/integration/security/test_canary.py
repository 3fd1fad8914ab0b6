"""Secrets are planted wherever a secret may be, and looked for in everything that queries leave behind.

One application on a cluster of its own runs every kind of query, with secrets in its options and with references to
them, and all mistakes about secrets. What is searched: logs of driver and executors, the event log, the pages of the
UI and its REST API, texts of `explain`, progress, events of listeners, errors, checkpoints.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import pytest
from pyspark import cloudpickle

from kit.canaries import Canary, files_below, hits
from kit.fakes.token_endpoint import TokenEndpoint
from kit.independent_client import Record, produce
from kit.programs import secret_queries
from kit.programs.cli import invoke
from kit.programs.cluster import StandaloneCluster
from pyspark_kafka._connector.spark.data_source import KafkaDataSource
from pyspark_kafka.testing import EmbeddedKafka, Listener, ensure_java_for_spark

# A real broker, though not the shared one that the fixtures' marker is derived from.
pytestmark = [
    pytest.mark.full("Secrets in everything that is left"),
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.timeout(500),
]

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
PAGE = (Path(__file__).parents[3] / "docs" / "secrets.md").read_text()
MAX_S = 400
# Each with a password of its own.
USERS = ("option", "connect", "shown", "env", "file", "call", "whole")
# Neither name nor value has what Spark redacts by default: docs/secrets.md.
SHOWN_BY_DEFAULT = {"private key": "option-key-stream.txt", "registry user": "option-registry.txt"}
# Defaults of spark.redaction.regex and spark.sql.redaction.options.regex, which Spark applies to names and values.
REDACTED_BY_DEFAULT = re.compile(r"(?i)secret|password|token|access[.]?key|api[.]?key|url")
CLIENTS = ("client", "referred client")
SECURED = Listener("SASL_PLAINTEXT", mechanisms=("PLAIN", "SCRAM-SHA-512"))
ENCRYPTED = Listener("SSL", client_auth="required")
WITH_TOKENS = Listener("SASL_PLAINTEXT", "TOKENS", mechanisms=("OAUTHBEARER",))
OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"


@dataclass(frozen=True)
class Run:
    """What one run of the application left.

    Attributes:
        planted: the canaries by where they were planted.
        left: the texts and files, by name.
    """

    planted: dict[str, Canary]
    left: dict[str, bytes]

    def texts(self, *prefixes: str) -> dict[str, bytes]:
        return {name: text for name, text in self.left.items() if name.startswith(prefixes)}


def classic_settings() -> dict[str, str]:
    """Return what docs/secrets.md has users of PySpark classic set, for private keys and the login of a registry."""
    ((name, value),) = re.findall(r"`(spark[.]sql[.]redaction[.]options[.]regex)` to `([^`]+)`", PAGE, re.MULTILINE)
    return {name: value}


def connect_settings() -> dict[str, str]:
    """Return what docs/secrets.md has users of Spark Connect set."""
    settings: dict[str, str] = {}
    (block,) = re.findall(r"```python\n(spark\.conf\.set.*?)```", PAGE, re.DOTALL)
    exec(block, {"spark": SimpleNamespace(conf=SimpleNamespace(set=settings.__setitem__))})  # noqa: S102 - of the page
    return settings


def with_key_that_spark_shows(kafka: EmbeddedKafka) -> dict[str, str]:
    """Return the options of a client with a private key that Spark does not redact by chance.

    Spark redacts an option whose value has a word that it looks for, such as "uRl" among 1,600 random letters.
    """
    for _ in range(100):
        options = kafka.client_options("SSL", "option", store="PEM-inline")
        if not REDACTED_BY_DEFAULT.search(options["kafka.ssl.keystore.key"]):
            return options
    raise AssertionError("each of 100 new keys has a word that Spark redacts")


def jaas(user: str, password: str, module: str = PLAIN) -> str:
    return f'{module} required username="{user}" password="{password}";'


class Planting:
    """The broker's users, the places of their passwords, and the plan of the program."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.planted: dict[str, Canary] = {}
        self.tokens: list[str] = []
        for user in USERS + CLIENTS:
            self.plant(user)

    def plant(self, name: str) -> Canary:
        return self.planted.setdefault(name, Canary(name))

    def put(self) -> dict[str, str]:
        """Put the passwords where references lead; return the variables of driver and executors."""
        (self.place / "password").write_text(f"{self.planted['file'].value}\n")
        (self.place / "client-secret").write_text(self.planted["referred client"].value)
        (self.place / "jaas").write_text(jaas("whole", self.planted["whole"].in_jaas) + "\n")
        package = self.place / "planted_vault"
        package.mkdir()
        (package / "__init__.py").write_text(f"def password():\n    return {self.planted['call'].value!r}\n")
        return {
            "PLANTED_PASSWORD": self.planted["env"].value,
            "PYTHONPATH": f"{self.place}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
            "PYSPARK_KAFKA_WIRE_LOG": "1",
        }

    def users(self) -> dict[str, str]:
        """Return the broker's users with their passwords."""
        return {name: self.planted[name].value for name in USERS}

    def queries(self, servers: str) -> dict[str, dict[str, Any]]:
        """Return each kind of query with a password in its options, and with a reference to one."""
        option = self.options(servers, jaas("option", self.planted["option"].in_jaas))
        referred = {
            "batch": self.options(servers, jaas("env", "env:PLANTED_PASSWORD")),
            "stream": self.options(servers, jaas("file", f"file:{self.place}/password", SCRAM), "SCRAM-SHA-512"),
            "once": self.options(servers, jaas("call", "call:planted_vault:password")),
            "continuous": self.options(servers, f"file:{self.place}/jaas"),
        }
        made = {f"option-{kind}": {"kind": kind, "options": option} for kind in (*referred, "sql")}
        return made | {f"referred-{kind}": {"kind": kind, "options": options} for kind, options in referred.items()}

    def stores(self, kafka: EmbeddedKafka) -> dict[str, dict[str, Any]]:
        """Return queries with a private key in their options, with stores that have a password, and with references."""
        inline = with_key_that_spark_shows(kafka)
        # A line from the middle of the key.
        self.planted["private key"] = Canary("private key", inline["kafka.ssl.keystore.key"].splitlines()[2])
        (self.place / "key.pem").write_text(inline["kafka.ssl.keystore.key"])
        referred = inline | {"kafka.ssl.keystore.key": f"file:{self.place}/key.pem"}
        made = {
            "option-key-stream": {"kind": "stream", "options": inline},
            "option-key-batch": {"kind": "batch", "options": inline},
            "referred-key": {"kind": "stream", "options": referred},
        }
        for kind in ("PKCS12", "JKS"):
            options = kafka.client_options("SSL", "option", store=kind)
            for store in ("keystore", "truststore"):
                name = f"kafka.ssl.{store}.password"
                self.planted[f"{kind} {store}"] = Canary(f"{kind} {store}", options[name])
            made[f"option-{kind}"] = {"kind": "batch", "options": options}
        return made

    def clients(self, kafka: EmbeddedKafka) -> TokenEndpoint:
        """Return a token endpoint that knows the clients; the tokens that it issues are noted."""
        issuer = kafka.security.tokens
        issue = issuer.token

        def noted(*arguments: Any, **further: Any) -> str:
            self.tokens.append(issue(*arguments, **further))
            return self.tokens[-1]

        issuer.token = noted  # type: ignore[method-assign]
        secrets = {name: self.planted[name].value for name in CLIENTS}
        return TokenEndpoint(issuer, kafka.security.authority, secrets)

    def with_tokens(self, kafka: EmbeddedKafka, endpoint: TokenEndpoint) -> dict[str, dict[str, Any]]:
        """Return queries that ask for tokens with the secret of a client, and one with a token in a file."""
        prefix = "kafka.sasl.oauthbearer"
        trusted = f'{OAUTH} ssl.truststore.type="PEM" ssl.truststore.location="{endpoint.trusted}";'
        asking = self.options(kafka.address("TOKENS"), trusted, "OAUTHBEARER")
        asking |= {f"{prefix}.token.endpoint.url": endpoint.url, f"{prefix}.client.credentials.client.id": "client"}
        # The secrets have characters that a header does not take as they are.
        asking |= {"kafka.sasl.oauthbearer.header.urlencode": "true"}
        secret = f"{prefix}.client.credentials.client.secret"
        referred = {
            f"{prefix}.client.credentials.client.id": "referred client",
            secret: f"file:{self.place}/client-secret",
        }
        return {
            "option-client": {"kind": "batch", "options": asking | {secret: self.planted["client"].value}},
            "referred-client": {"kind": "stream", "options": asking | referred},
            "option-token-file": {"kind": "batch", "options": kafka.client_options("TOKENS", "anyone")},
        }

    def registries(self, servers: str) -> dict[str, dict[str, Any]]:
        """Return reads of typed values with the login of a registry in their options, and with references to it."""
        read = self.options(servers, jaas("env", "env:PLANTED_PASSWORD")) | {
            "valueFormat": "json",
            "valueSchema": "id INT",
            "valueFraming": "confluent",
            "mode": "PERMISSIVE",
        }
        registry, tls = "schema.registry", {"schema.registry.ssl.key.password": self.plant("registry key").value}
        in_url = f"https://ann:{quote(self.plant('registry url').value, safe='')}@127.0.0.1:1"
        logins = {
            "option-registry": {f"{registry}.basic.auth.user.info": f"ann:{self.plant('registry user').value}", **tls},
            "option-registry-token": {f"{registry}.bearer.auth.token": self.plant("registry token").value},
            "referred-registry": {f"{registry}.basic.auth.user.info": f"file:{self.place}/registry"},
        }
        (self.place / "registry").write_text(f"ann:{self.plant('referred registry').value}")
        address = {f"{registry}.url": "https://127.0.0.1:1", f"{registry}.ssl.certificate.location": "/none.pem"}
        made = {name: {"kind": "typed", "options": read | address | login} for name, login in logins.items()}
        made["option-registry-url"] = {"kind": "typed", "options": read | {f"{registry}.url": in_url}}
        return made | {"referred-registry-sql": {**made["referred-registry"], "kind": "sql"}}

    @staticmethod
    def options(servers: str, config: str, mechanism: str = "PLAIN") -> dict[str, str]:
        return {
            "kafka.bootstrap.servers": servers,
            "kafka.security.protocol": "SASL_PLAINTEXT",
            "kafka.sasl.mechanism": mechanism,
            "kafka.sasl.jaas.config": config,
        }

    def mistakes(self, servers: str) -> dict[str, dict[str, Any]]:
        def wrong(name: str, config: str = "", **changes: str) -> dict[str, str]:
            canary = self.plant(f"mistake {name}")
            options = self.options(servers, jaas("option", canary.in_jaas))
            if config:
                options["kafka.sasl.jaas.config"] = config.replace("CANARY", canary.in_jaas)
            return options | {key: value.replace("CANARY", canary.value) for key, value in changes.items()}

        made: dict[str, dict[str, Any]] = {}
        for kind in ("read", "write", "stream"):
            made[f"password-{kind}"] = {"kind": kind, "options": wrong(f"password {kind}")}
        several = {
            "mechanism": wrong("mechanism", **{"kafka.sasl.mechanism": "SCRAM-SHA-256"}),
            "not-enabled": wrong(
                "not enabled", jaas("option", "CANARY", SCRAM), **{"kafka.sasl.mechanism": "SCRAM-SHA-512"}
            ),
            "unreachable": wrong("unreachable", **{
                "kafka.bootstrap.servers": "127.0.0.1:1", "kafka.default.api.timeout.ms": "1000"
            }),
            "near-name": wrong("near name", **{"kafka.sasl.jaas.confg": "CANARY"}),
            "unclosed": wrong("unclosed", f'{PLAIN} required username="option" password="CANARY;'),
            "no-module": wrong("no module", "CANARY"),
            "userinfo": wrong("userinfo", **{"kafka.bootstrap.servers": "ann:CANARY@127.0.0.1:1"}),
            "url": wrong("url", **{"kafka.bootstrap.servers": "https://ann:CANARY@127.0.0.1:1/path"}),
            "key-password": wrong("key password", **{
                "kafka.security.protocol": "SASL_SSL", "kafka.ssl.keystore.location": "/none.pem",
                "kafka.ssl.keystore.type": "PEM", "kafka.ssl.key.password": "CANARY",
            }),
            "store-passwords": wrong("store passwords", **{
                "kafka.ssl.keystore.password": "CANARY", "kafka.ssl.truststore.password": "CANARY",
                "kafka.ssl.keystore.key": "-----BEGIN PRIVATE KEY-----\nCANARY\n-----END PRIVATE KEY-----",
            }),
            "client-secret": wrong("client secret", **{
                "kafka.sasl.oauthbearer.client.credentials.client.secret": "CANARY",
            }),
            "reference": wrong("reference", jaas("option", "env:CANARY")),
            "registry-url": wrong("registry url again", **{
                "valueFormat": "avro", "schema.registry.url": "ann:CANARY@registry:8081",
            }),
            "registry-user": wrong("registry user again", **{
                "valueFormat": "avro", "schema.registry.url": "http://far:1",
                "schema.registry.basic.auth.user.info": "ann:CANARY",
            }),
            "registry-near-name": wrong("registry near name", **{
                "valueFormat": "avro", "schema.registry.basic.auth.userinfo": "ann:CANARY",
            }),
            "key-as-location": wrong("key as location", **{
                "kafka.security.protocol": "SASL_SSL",
                "kafka.ssl.keystore.location": "-----BEGIN PRIVATE KEY-----\nCANARY\n-----END PRIVATE KEY-----",
            }),
            "key-as-trusted": wrong("key as trusted", **{
                "kafka.security.protocol": "SASL_SSL",
                "kafka.ssl.truststore.location": "-----BEGIN PRIVATE KEY-----\\nCANARY\\n-----END PRIVATE KEY-----",
            }),
            "login-as-mechanism": wrong("login as mechanism", **{
                "kafka.sasl.mechanism": f'{PLAIN} required username="option" password="CANARY";',
            }),
            "password-as-protocol": wrong("password as protocol", **{"kafka.security.protocol": "CANARY"}),
            "password-as-number": wrong("password as number", **{"kafka.fetch.max.bytes": "CANARY"}),
            "password-as-type": wrong("password as type", **{
                "kafka.security.protocol": "SASL_SSL", "kafka.ssl.keystore.location": "/none.pem",
                "kafka.ssl.keystore.type": "CANARY",
            }),
            "token-as-function": wrong("token as function", **{
                "kafka.sasl.mechanism": "OAUTHBEARER", "kafka.sasl.oauthbearer.token.callable": "CANARY",
            }),
            "token-as-endpoint": wrong("token as endpoint", **{
                "kafka.sasl.mechanism": "OAUTHBEARER", "kafka.sasl.oauthbearer.token.endpoint.url": "CANARY",
            }),
            "registry-query": wrong("registry query", **{
                "valueFormat": "avro", "schema.registry.url": "https://far:1/?key=CANARY",
            }),
            "registry-key-as-location": wrong("registry key as location", **{
                "valueFormat": "avro", "schema.registry.url": "https://far:1",
                "schema.registry.ssl.certificate.location": "-----BEGIN PRIVATE KEY-----\nCANARY\n-----END",
            }),
            "absent": wrong("absent", jaas("option", "env:PLANTED_ABSENT")),
        }  # fmt: skip
        return made | {name: {"kind": "read", "options": options} for name, options in several.items()}

    def connect(self, servers: str) -> dict[str, dict[str, Any]]:
        return {
            "reference": {"options": self.options(servers, jaas("env", "env:PLANTED_PASSWORD")), "settings": {}},
            "option": {
                "options": self.options(servers, jaas("connect", self.planted["connect"].in_jaas)),
                "settings": connect_settings(),
            },
            "shown": {"options": self.options(servers, jaas("shown", self.planted["shown"].in_jaas)), "settings": {}},
        }


def settings_of(place: Path, environment: dict[str, str], redaction: dict[str, str]) -> dict[str, str]:
    (place / "events").mkdir()
    # Spark shows settings, but for those that are called password.
    return {f"spark.executorEnv.{name}": value for name, value in environment.items()} | {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.port": "0",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "1",
        **redaction,
        "spark.sql.warehouse.dir": str(place / "warehouse"),
        "spark.executor.memory": "512m",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": f"file://{place}/events",
        "spark.eventLog.compress": "false",
        "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
    }


def _is_typed(query: dict[str, Any]) -> bool:
    """Whether a query has options that only reads of typed values have."""
    return "valueFormat" in query["options"]


def save_pickles(queries: dict[str, dict[str, Any]], place: Path) -> None:
    """Save what Spark pickles for tasks when references are used: readers with their partitions, and writers."""
    place.mkdir()
    for name, query in queries.items():
        if name.startswith("referred"):
            source = KafkaDataSource(options=query["options"] | {"subscribe": "in"})
            reader = source.reader(source.schema())
            parts = cloudpickle.dumps((reader, reader.partitions()))  # type: ignore[no-untyped-call]
            writer = b""
            if not _is_typed(query):
                sink = KafkaDataSource(options=query["options"] | {"topic": "out"})
                writer = cloudpickle.dumps(sink.writer(source.schema(), overwrite=False))  # type: ignore[no-untyped-call]
            (place / f"{name}.pkl").write_bytes(b"".join((cloudpickle.dumps(source), parts, writer)))  # type: ignore[no-untyped-call]


def run_commands(options: dict[str, dict[str, str]], hidden: Path, place: Path) -> None:
    """Save what the command line says with these options, in a file of Java's properties."""
    place.mkdir()
    for name, given in options.items():
        file = hidden / f"{name}.properties"
        escaped = {
            key.removeprefix("kafka."): value.replace("\\", "\\\\").replace("\n", "\\n") for key, value in given.items()
        }
        file.write_text("".join(f"{key}={value}\n" for key, value in escaped.items()))
        done = invoke("transactions", "list", "--config", str(file), "--all")
        (place / f"{name}.txt").write_text(f"{done.exit_code}\n{done.output}\n{done.exception!r}")


def run_checks(options: dict[str, dict[str, str]], place: Path) -> None:
    """Save what `pyspark-kafka check` says of these options, as text and as JSON."""
    place.mkdir()
    for name, given in options.items():
        listed = [f"--option={key}={value}" for key, value in given.items()]
        for form in ([], ["--json"]):
            done = invoke("check", *listed, "--topic", "in", *form)
            (place / f"{name}{len(form)}.txt").write_text(f"{done.exit_code}\n{done.output}\n{done.exception!r}")


@pytest.fixture
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    ensure_java_for_spark()
    hidden, place = tmp_path_factory.mktemp("hidden"), tmp_path_factory.mktemp("left")
    planting = Planting(hidden)
    environment = planting.put()
    with ExitStack() as held:
        kafka = held.enter_context(EmbeddedKafka(listeners=[SECURED, ENCRYPTED, WITH_TOKENS], users=planting.users()))
        (place / "cluster").mkdir()
        cluster = held.enter_context(StandaloneCluster(place / "cluster"))
        cluster.start_worker()
        # Of this process and the driver, not of the workers.
        patch = held.enter_context(pytest.MonkeyPatch.context())
        servers = kafka.address(SECURED.protocol)
        for topic in ("in", "out"):
            kafka.create_topic(topic)
        produce(kafka.bootstrap_servers, "in", [Record(b"k", b"v%d" % number) for number in range(3)])
        for name, value in environment.items():
            patch.setenv(name, value)
        patch.syspath_prepend(hidden)
        # Of the run before, with the secret of that.
        patch.delitem(sys.modules, "planted_vault", raising=False)
        endpoint = held.enter_context(planting.clients(kafka))
        queries = planting.queries(servers) | planting.stores(kafka) | planting.with_tokens(kafka, endpoint)
        queries |= planting.registries(servers)
        mistakes = planting.mistakes(servers)
        refused = queries["option-client"]["options"] | {
            "kafka.sasl.oauthbearer.client.credentials.client.secret": planting.plant("wrong client secret").value
        }
        mistakes["client-refused"] = {"kind": "read", "options": refused}
        plan = {
            "settings": settings_of(place, environment, request.param),
            "queries": queries,
            "mistakes": mistakes,
            "connect": planting.connect(servers),
            "keys": str(hidden / "keys"),
        }
        save_pickles(queries, place / "pickles")
        # Of a file of Java's properties: typed values have options that are none.
        right = {f"right-{name}": each["options"] for name, each in queries.items() if not _is_typed(each)}
        run_commands(right, hidden, place / "commands")
        run_commands({f"wrong-{name}": each["options"] for name, each in mistakes.items()}, hidden, place / "commands2")
        wrong = {name: mistakes[name]["options"] for name in ("password-read", "mechanism", "unclosed", "near-name")}
        run_checks({"right": queries["option-batch"]["options"], **wrong}, place / "checks")
        (hidden / "plan.json").write_text(json.dumps({**plan, "master": cluster.url}))
        done = subprocess.run(
            [sys.executable, str(Path(secret_queries.__file__)), str(hidden / "plan.json"), str(place)],
            capture_output=True, text=True, timeout=MAX_S, check=False,
        )  # fmt: skip
        (place / "driver.log").write_text(done.stdout + done.stderr)
        (place / "broker.log").write_text(kafka.log)
    assert done.returncode == 0, done.stderr[-4000:]
    assert "FAILED []" in done.stdout, done.stdout + done.stderr[-4000:]
    # The end of a token is its signature.
    for number, token in enumerate(dict.fromkeys(planting.tokens)):
        planting.planted[f"token {number}"] = Canary(f"token {number}", token[-40:])
    for number, key in enumerate((hidden / "keys").read_text().split()):
        planting.planted[f"key of run {number}"] = Canary(f"key of run {number}", bytes.fromhex(key))
    return Run(planting.planted, files_below(place))


def check_places(run: Run) -> None:
    """Check that what is searched is there, in a form that can be searched."""
    places = ("driver.log", "events/", "pages/", "checkpoints/", "commands/", "commands2/", "checks/", "pickles/")
    joined = {name: b"\n".join(run.texts(name).values()) for name in places}
    assert b"pyspark_kafka.wire" in joined["driver.log"]
    assert b"SparkListenerSQLExecutionStart" in joined["events/"]
    assert b"SparkListenerConnectOperationStarted" in joined["events/"]
    assert b"(redacted)" in joined["pages/"]
    assert b'{"in":{"0":3}}' in joined["checkpoints/"]
    assert b"progress {" in run.left["events.txt"]
    assert b"env:PLANTED_PASSWORD" in joined["pickles/"]
    assert all(text.startswith(b"0\n") for text in run.texts("commands/").values())
    assert b"SASL_AUTHENTICATION_FAILED" in joined["commands2/"]
    assert {text[:1] for text in run.texts("checks/").values()} == {b"0", b"1"}
    executors = run.texts("cluster/work-1/")
    assert any(b"pyspark_kafka.wire" in text for name, text in executors.items() if name.endswith("stderr"))
    assert {"key of run 0", "token 0"} <= set(run.planted)
    assert b"TOKEN_REFUSED" in run.left["mistake-client-refused.txt"]


@pytest.mark.parametrize("run", [classic_settings()], indirect=True, ids=["as the docs say"])
def test_no_secret_is_in_anything_that_is_left(run: Run) -> None:
    """One test, since the run takes a minute. Spark Connect's pages show a password that is neither referred to nor
    redacted, as the docs say; so the search finds what is there."""
    check_places(run)
    assert hits([canary for name, canary in run.planted.items() if name != "shown"], run.left) == []
    assert places_of("shown", run) == {"events", "pages"}


@pytest.mark.parametrize("run", [{}], indirect=True, ids=["defaults"])
def test_only_the_two_secrets_of_the_docs_are_left_with_the_defaults_of_spark(run: Run) -> None:
    """The table of docs/secrets.md says where: in plans of streams, and of temporary views, which are in the event log
    and on the pages of the UI. Without what the docs have users set, the search finds them."""
    check_places(run)
    expected = ("shown", *SHOWN_BY_DEFAULT)
    assert hits([canary for name, canary in run.planted.items() if name not in expected], run.left) == []
    for name, explained in SHOWN_BY_DEFAULT.items():
        assert places_of(name, run) == {"events", "pages", explained}


def places_of(name: str, run: Run) -> set[str]:
    """Return the first folders, or the files, in which a canary was found."""
    return {hit.rpartition(" in ")[2].partition("/")[0] for hit in hits([run.planted[name]], run.left)}
