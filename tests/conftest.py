"""What holds for the whole run: the fixtures' plugins, the environment of workers, the order of tests."""

from __future__ import annotations

import os
import signal
import time
from importlib import metadata
from importlib.util import find_spec

import pytest
from hypothesis import settings

from archive_classes import start_drivers_quickly

pytest_plugins = (
    "kit.fixtures.apicurio",
    "kit.fixtures.broker",
    "kit.fixtures.clusters",
    "kit.fixtures.codec",
    "kit.fixtures.guarded",
    "kit.fixtures.hdfs",
    "kit.fixtures.kafka_python",
    "kit.fixtures.kafka_tools",
    "kit.fixtures.kerberos",
    "kit.fixtures.kinds",
    "kit.fixtures.leftovers",
    "kit.fixtures.offsets",
    "kit.fixtures.postgres",
    "kit.fixtures.protoc",
    "kit.fixtures.recorded",
    "kit.fixtures.registry",
    "kit.fixtures.secured_broker",
    "kit.fixtures.spark",
    "kit.fixtures.spark_versions",
    "kit.fixtures.temporary",
    "kit.fixtures.threads",
    "kit.fixtures.waits",
    "kit.fixtures.wheel",
    "kit.fixtures.wire",
)

# Only the environment of `make test-sail` has what they run on.
collect_ignore = [] if find_spec("pysail") else ["integration/_connector/spark/test_sail.py"]

# Spark's own times, and those that Python makes of them, are shown in UTC wherever the tests run.
os.environ["TZ"] = "UTC"
time.tzset()
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell that runs the tests in the background ignores it, and so would the programs that tests interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)
start_drivers_quickly()
# An example may take as long as a busy machine needs for it; a test that hangs ends by pytest's timeout.
# Same examples in each run: a failure is a fault of the change under test.
settings.register_profile("quick", max_examples=25, deadline=None, derandomize=True)
# Where the variable CI is set, new profiles inherit `derandomize` from Hypothesis' own.
settings.register_profile("full", max_examples=300, deadline=None, derandomize=False, print_blob=True)
# `full` for tests whose examples take long: each of theirs is a whole schema, of which a package has hundreds.
settings.register_profile("full of whole schemas", settings.get_profile("full"), max_examples=60)
# The option --hypothesis-profile takes precedence: Hypothesis applies it after this file.
settings.load_profile("quick")


def pytest_configure(config: pytest.Config) -> None:
    """Let PySpark 4.0 and 4.1 leave the sockets of `collect()` to the garbage collector, as they do."""
    if metadata.version("pyspark").startswith(("4.0.", "4.1.")):
        config.addinivalue_line("filterwarnings", "ignore:unclosed <socket:ResourceWarning")
        config.addinivalue_line("filterwarnings", "ignore::pytest.PytestUnraisableExceptionWarning")


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name bytes by their argument: those that hold a time differ between the processes that share the tests."""
    return argname if isinstance(val, bytes | bytearray) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Have the long tests run first, otherwise in random order: one at the end keeps the other processes waiting."""
    items.sort(key=_how_late)


def _how_late(item: pytest.Item) -> int:
    folders = item.path.parts
    return 0 if "faults" in folders else 1 if "integration" in folders else 2
