"""That kafka-python is whole for who uses it in the same process, though our import leaves its clients out."""

from __future__ import annotations

import subprocess
import sys

import pytest

_OURS = "import sys, pyspark_kafka._client.client.wire.messages; assert 'kafka.consumer' not in sys.modules\n"


def run(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("import kafka; print(kafka.KafkaConsumer.__name__)", "KafkaConsumer"),
        ("from kafka import KafkaProducer; print(KafkaProducer.__name__)", "KafkaProducer"),
        ("from kafka import *; print(KafkaAdminClient.__name__)", "KafkaAdminClient"),
        ("from kafka import protocol; print(protocol.__name__)", "kafka.protocol"),
        ("import kafka; print(kafka.protocol.metadata.__name__)", "kafka.protocol.metadata"),
        ("import kafka.consumer; print(kafka.consumer.KafkaConsumer.__name__)", "KafkaConsumer"),
        ("from kafka import errors; print(errors.KafkaError.__name__)", "KafkaError"),
        ("import kafka; print(bool(kafka.__version__))", "True"),
        ("import kafka; print(hasattr(kafka, 'no_such_name'), hasattr(kafka, '__wrapped__'))", "False False"),
        ("import kafka, importlib; print(importlib.reload(kafka).KafkaConsumer.__name__)", "KafkaConsumer"),
    ],
)
def test_kafka_python_is_whole_for_a_program_after_our_import(program: str, expected: str) -> None:
    assert run(_OURS + program) == expected


def test_requests_are_the_same_classes_that_kafka_python_itself_uses() -> None:
    program = (
        "from pyspark_kafka._client.client.wire.messages import CreateTopicsRequest, MetadataRequest\n"
        "import kafka\n"
        "from kafka.admin import client\n"
        "import kafka.protocol.admin, kafka.protocol.metadata\n"
        "print(kafka.protocol.admin.CreateTopicsRequest is CreateTopicsRequest,\n"
        "      kafka.protocol.metadata.MetadataRequest is MetadataRequest)"
    )
    assert run(program) == "True True"


def test_a_program_that_imported_kafka_python_before_keeps_what_it_has() -> None:
    program = "import kafka; had = kafka.KafkaConsumer; import pyspark_kafka._client.client.wire.messages"
    assert run(f"{program}; print(kafka.KafkaConsumer is had)") == "True"


def test_threads_that_ask_at_once_all_get_what_they_ask_for() -> None:
    program = (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "import kafka\n"
        "names = ['KafkaConsumer', 'KafkaProducer', 'KafkaAdminClient', 'TopicPartition'] * 4\n"
        "with ThreadPoolExecutor(16) as pool:\n"
        "    print(all(pool.map(lambda name: getattr(kafka, name).__name__ == name, names)))"
    )
    assert run(_OURS + program) == "True"
