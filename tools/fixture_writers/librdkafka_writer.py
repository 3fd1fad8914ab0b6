"""Plays a script of tools/make_fixtures.py with librdkafka: JSON on standard input, JSON on standard output.

Runs in a virtual environment of its own that has confluent-kafka, which nothing else here needs.
"""

from __future__ import annotations

import base64
import importlib
import json
import sys
from typing import Any


def main() -> None:
    """Play the script, and return librdkafka's version and what brokers acknowledged."""
    confluent_kafka = importlib.import_module("confluent_kafka")
    script = json.load(sys.stdin)
    producers = {}
    for name, description in script["producers"].items():
        # Longer than a step takes to hand over its records: one batch a step.
        config = {"bootstrap.servers": script["bootstrap_servers"], "linger.ms": 1000, "enable.idempotence": True}
        config["compression.type"] = description["codec"]
        if description["transactional_id"] is not None:
            config["transactional.id"] = description["transactional_id"]
        producers[name] = confluent_kafka.Producer(config)
        if description["transactional_id"] is not None:
            producers[name].init_transactions(30)
    sent: list[dict[str, int]] = []
    for verb, name, *details in script["steps"]:
        producer = producers[name]
        if verb == "begin":
            producer.begin_transaction()
        elif verb == "commit":
            producer.commit_transaction(30)
        elif verb == "abort":
            producer.abort_transaction(30)
        else:
            sent += send(producer, script["topic"], details[0])
    print(json.dumps({"version": confluent_kafka.libversion()[0], "sent": sent}))


def send(producer: Any, topic: str, records: list[dict[str, Any]]) -> list[dict[str, int]]:
    """Send records as one batch and wait for their acknowledgement."""
    acknowledged: list[dict[str, int]] = []

    def delivered(error: Any, message: Any) -> None:
        if error is not None:
            raise RuntimeError(str(error))
        acknowledged.append({"offset": message.offset(), "timestamp_ms": message.timestamp()[1]})

    for record in records:
        producer.produce(
            topic,
            partition=0,
            key=decoded(record["key"]),
            value=decoded(record["value"]),
            headers=[((decoded(key) or b"").decode(), decoded(value)) for key, value in record["headers"]],
            timestamp=record["timestamp_ms"],
            on_delivery=delivered,
        )
    left = producer.flush(30)
    if left or len(acknowledged) != len(records):
        raise RuntimeError(f"{left} records were not delivered")
    return acknowledged


def decoded(text: str | None) -> bytes | None:
    """Read base64, or null."""
    return None if text is None else base64.b64decode(text)


main()
