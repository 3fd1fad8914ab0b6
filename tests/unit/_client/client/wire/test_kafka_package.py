"""The package `kafka` that is executed when one of its names is looked up."""

from __future__ import annotations

from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import ModuleType

import pytest

from pyspark_kafka._client.client.wire.kafka_package import _Run


class InterruptedLoader(Loader):
    """Executes a package with one name; meets an interrupt at the first time."""

    def __init__(self) -> None:
        self.times = 0

    def exec_module(self, module: ModuleType) -> None:
        """Define the name."""
        self.times += 1
        if self.times == 1:
            raise KeyboardInterrupt
        vars(module)["KafkaConsumer"] = "a consumer"


def test_package_is_executed_again_after_an_interrupt() -> None:
    package, loader = ModuleType("kafka"), InterruptedLoader()
    package.__spec__ = ModuleSpec("kafka", loader)
    vars(package)["__getattr__"] = _Run(package)
    with pytest.raises(KeyboardInterrupt):
        _ = package.KafkaConsumer
    assert package.KafkaConsumer == "a consumer"
    # Once it is complete, it is executed no more.
    assert not hasattr(package, "KafkaProducer")
    assert loader.times == 2
