"""Fixtures that every test may use: one broker and one Spark session for the whole run, topics with fresh names."""

from __future__ import annotations

import itertools
import os
import sys
import time
import uuid
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from archive_classes import start_drivers_quickly
from pyspark_kafka.client.pool import close_clients
from pyspark_kafka.testing import EmbeddedKafka, ensure_java_for_spark

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

# Workers must be this interpreter: the default is the `python3` of PATH, which need not have this package.
os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
# Spark's own times, and those that Python makes of them, are shown in UTC wherever the tests run.
os.environ["TZ"] = "UTC"
time.tzset()
start_drivers_quickly()


class TopicMaker(Protocol):
    """What the `make_topic` fixture gives."""

    def __call__(self, partitions: int = 1, config: Mapping[str, str] | None = None) -> str:
        """Make a topic of a name that was never used, and give the name."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by the fixtures they use, so that `-m "not broker and not spark"` picks the quick ones.

    And have the long ones run first, otherwise in random order: a process that has a long one left at the end keeps
    the others waiting.
    """
    items.sort(key=_how_late)
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        if fixtures & {"kafka", "bootstrap_servers", "make_topic"}:
            item.add_marker(pytest.mark.broker)
        if "spark" in fixtures:
            item.add_marker(pytest.mark.spark)


def _how_late(item: pytest.Item) -> int:
    folders = item.path.parts
    return 0 if "faults" in folders else 1 if "integration" in folders else 2


@pytest.fixture(scope="session")
def kafka() -> Iterator[EmbeddedKafka]:
    """One real broker for the run. A test that stops, freezes or kills a broker starts one of its own."""
    with EmbeddedKafka() as broker:
        yield broker
        # What tests in this process have pooled: open sockets at exit are warned of.
        close_clients()


@pytest.fixture(scope="session")
def bootstrap_servers(kafka: EmbeddedKafka) -> str:
    """The address of that broker."""
    return kafka.bootstrap_servers


@pytest.fixture(scope="session")
def make_topic(kafka: EmbeddedKafka) -> TopicMaker:
    """Makes topics on that broker; each call gives a name of its own, so tests never meet."""
    numbers = itertools.count()
    run = uuid.uuid4().hex[:8]

    def make(partitions: int = 1, config: Mapping[str, str] | None = None) -> str:
        name = f"t-{run}-{next(numbers)}"
        kafka.create_topic(name, partitions, config)
        return name

    return make


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One local Spark session for the run."""
    ensure_java_for_spark()
    from pyspark.sql import SparkSession  # noqa: PLC0415 - after Java is chosen, and not for tests without Spark

    place = tmp_path_factory.mktemp("spark")
    session = (
        SparkSession.builder.master("local[2]")
        .appName("pyspark-kafka-tests")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.execution.arrow.pyspark.enabled", "true")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(place / "warehouse"))
        .config("spark.local.dir", str(place / "local"))
        # For `connect_url`: the server of Spark Connect, in the same JVM, on a free port.
        .config("spark.plugins", "org.apache.spark.sql.connect.SparkConnectPlugin")
        .config("spark.connect.grpc.binding.address", "127.0.0.1")
        .config("spark.connect.grpc.binding.port", "0")
        .config("spark.driver.extraJavaOptions", f"-Duser.timezone=UTC -Dderby.system.home={place}")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def connect_url(spark: SparkSession) -> str:
    """A server of Spark Connect, for `remote`: in the JVM of the `spark` fixture, with sessions of its own.

    The server that `remote("local[2]")` starts for itself takes as long as another driver: test_connect.py has one.
    """
    # Only the server knows which port it got.
    jvm: Any = spark._jvm
    service = getattr(jvm.org.apache.spark.sql.connect.service, "SparkConnectService$")
    return f"sc://127.0.0.1:{getattr(service, 'MODULE$').localPort()}"
