"""What is imported when: Spark starts a Python process for each step of a query, one after the other."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kit.record_batches import plain_batch

# What Spark runs in the process before it runs ours.
_DAEMON = "import pyspark.daemon"
_FIND = "import pyspark.sql.worker.lookup_data_sources"
_CREATE = "import pyspark.sql.worker.create_data_source"
_PLAN = "import pyspark.sql.worker.plan_data_source_read"
_STREAM = "import pyspark.sql.streaming.python_streaming_source_runner"
_WRITE = "import pyspark.sql.worker.write_into_data_source, pyarrow"
_COMMIT = "import pyspark.sql.worker.python_streaming_sink_runner"
_TASK = "import pyspark.worker, pandas, pyarrow"

_SOURCE = "{'kafka.bootstrap.servers': 'b:9092', 'subscribe': 't'}"
_SINK = "{'kafka.bootstrap.servers': 'b:9092', 'topic': 't'}"
_ROWS = "StructType([StructField('value', BinaryType())])"
_READER = f"pickle = dumps(source({_SOURCE}).streamReader({_ROWS}))"
_WRITER = f"pickle = dumps(source({_SINK}).streamWriter({_ROWS}, False))"

# Programs, and what only sources of others need or reads with filters: never parts of these queries.
_NEVER = (
    "pyspark_kafka.connector.filters",
    "pyspark_kafka.connector.rows",
    "pyspark_kafka.connector.simple",
    "rich",
    "typer",
    "pyspark_kafka._ops.cli",
    "pyspark_kafka.testing",
    # Keys and values are bytes here.
    "pyspark_kafka._typed",
    "pyspark_kafka.formats",
    "arro3",
    "boto3",
    "confluent_kafka",
    "fastavro",
    "grpc_tools",
    "msgspec",
    "ptars",
    "kafka.consumer",
    "kafka.producer",
    "kafka.admin",
)
_BROKERS = (
    "kafka.protocol",
    "kafka.net",
    "pyspark_kafka._client.client.cluster.kafka_client",
    "pyspark_kafka._client.client.net.connection",
    "ssl",
)
_CODEC = ("pyspark_kafka.records.decoding", "pyspark_kafka.records.encoding", "cramjam", "crc32c")
_ROWS_IN_COLUMNS = ("pyarrow", "numpy", "pandas")
_READS = ("pyspark_kafka._connector.source.executor.partition_reader", "pyspark_kafka._client.client.fetch.fetcher")
_WRITES = (
    "pyspark_kafka._connector.sink.executor.data_writer",
    "pyspark_kafka._client.client.produce.producer",
    "pyarrow.compute",
)


@pytest.mark.parametrize(
    ("imports", "step", "without"),
    [
        pytest.param(
            f"{_DAEMON}; {_FIND}",
            "source.name()",
            (*_BROKERS, *_CODEC, *_ROWS_IN_COLUMNS, "pyspark_kafka._client.options"),
            id="the source is found",
        ),
        pytest.param(
            f"{_DAEMON}; {_CREATE}", f"source({_SOURCE}).schema()", (*_BROKERS, *_CODEC, *_ROWS_IN_COLUMNS),
            id="the source is made and tells its schema",
        ),
        pytest.param(
            f"{_DAEMON}; {_PLAN}", _READER, (*_BROKERS, *_CODEC, *_READS, *_WRITES, "pandas"),
            id="the reader of a stream is pickled",
        ),
        pytest.param(
            _STREAM,
            f"{_READER}; import pyspark_kafka._client.client.cluster.kafka_client",
            (*_READS, *_WRITES, "pandas", "kafka.net"),
            id="a stream is planned",
        ),
        pytest.param(
            f"{_DAEMON}; {_WRITE}", _WRITER, (*_BROKERS, *_CODEC, *_READS, *_WRITES, "pandas"),
            id="the writer of a micro-batch is pickled",
        ),
        pytest.param(
            f"{_DAEMON}; {_COMMIT}", _WRITER, (*_BROKERS, *_CODEC, *_READS, *_WRITES, "pandas"),
            id="a micro-batch is committed",
        ),
        pytest.param(
            f"{_DAEMON}; {_TASK}",
            "import pyspark_kafka._connector.source.executor.partition_reader",
            ("kafka.net", *_WRITES),
            id="a task reads",
        ),
        pytest.param(
            f"{_DAEMON}; {_TASK}",
            "import pyspark_kafka._connector.sink.executor.data_writer", ("kafka.net", *_READS),
            id="a task writes",
        ),
    ],
)  # fmt: skip
def test_a_process_imports_what_its_step_needs(imports: str, step: str, without: tuple[str, ...]) -> None:
    program = f"""
import sys
{imports}
from pyspark.cloudpickle import dumps
from pyspark.sql.types import BinaryType, StructField, StructType
before = set(sys.modules)
from pyspark_kafka import DefaultSource as source
{step}
print(*sorted(set(sys.modules) - before))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    imported = done.stdout.split()
    assert "pyspark_kafka" in imported
    unwanted = [
        name for name in imported for other in (*without, *_NEVER) if name == other or name.startswith(f"{other}.")
    ]
    assert unwanted == []


_READ = """
import sys
import pyspark_kafka._connector.sink.driver.exactly_once, pyspark_kafka._connector.source.driver.micro_batch
print("pyarrow.fs" in sys.modules)
"""


def test_file_systems_of_clouds_are_not_imported_for_a_local_checkpoint() -> None:
    done = subprocess.run([sys.executable, "-c", _READ], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["False"]


_TASK_READS = """
import sys
from pyspark_kafka._base.model import TopicPartition
from pyspark_kafka.records import iter_decode
from pyspark_kafka._connector.source.executor.columns import SOURCE_SCHEMA, BatchAssembler

assembler = BatchAssembler(TopicPartition("t", 3), SOURCE_SCHEMA)
(decoded,) = iter_decode(bytes.fromhex("{records}"), start_offset=0, columns=assembler.decoded_columns)
rows = assembler.assemble(decoded)
print("pandas" in sys.modules)
print(rows.num_rows, rows.column("topic").unique(), rows.column("partition").unique())
"""


def test_rows_are_read_without_pandas() -> None:
    # Arrow imports it to make anything of a Python object: longer than all the rest of a worker's first read.
    program = _TASK_READS.format(records=plain_batch(0, 25).hex())
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["False", "25", "[", '"t"', "]", "[", "3", "]"]


def test_options_import_nothing_that_reads_schemas() -> None:
    program = (
        "import sys; from pyspark_kafka._client.options import parse_read_options; "
        "parse_read_options({'kafka.bootstrap.servers': 'b:1', 'subscribe': 't', 'valueFormat': 'json', "
        "'valueSchema': 'id INT'}); "
        "loaded = ('pyspark_kafka._typed', 'pyspark_kafka.formats', 'pyarrow'); "
        "print([name for name in sys.modules if name.startswith(loaded)])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_package_of_formats_loads_nothing_before_it_is_used() -> None:
    program = (
        "import sys, pyspark_kafka.formats as formats\n"
        "assert 'pyarrow' not in sys.modules\n"
        "print(formats.decode.__name__, formats.encode.__name__, 'pyspark' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["decode", "encode", "False"]
