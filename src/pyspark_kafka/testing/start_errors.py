"""The errors of an embedded broker that did not start, or was not started."""

from __future__ import annotations

from pyspark_kafka.errors import SetupError
from pyspark_kafka.testing.broker_config import explain_log


def start_failed(why: str, log: str) -> SetupError:
    """Build the error of a broker that did not start, with the part of its log that says why."""
    explained = explain_log(log)
    return SetupError(
        f"The embedded Kafka broker did not start: {why}." + (f" Its log says:\n{explained}\n" if explained else ""),
        condition="BROKER_NOT_STARTED",
        hint="Check the properties given to EmbeddedKafka, the memory and the disk of this machine.",
    )


def not_started() -> SetupError:
    """Build the error of a broker that was used before its start."""
    return SetupError(
        "The embedded Kafka broker has not been started.",
        condition="BROKER_NOT_RUNNING",
        hint="Use it as a context manager, or call start() first.",
    )
