"""Write the page of promises, docs/promises.md, from the table below, the options and the records of runs.

Run: .venv/bin/python tools/promises.py > docs/promises.md
"""

# ruff: noqa: E501 - cells of the page

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from pyspark_kafka._client.options import OPTIONS
from pyspark_kafka.checkpoint import CheckpointFiles
from pyspark_kafka.continuous.channel.driver_side import LOST_SECONDS
from pyspark_kafka.continuous.query.failures import CHECKPOINT_OUTAGE_S
from pyspark_kafka.version import __version__
from results import commit_of, conditions, git, read_results

# A run counts as old after this number of commits that changed the package.
MAX_COMMITS = 100
NOT_RUN = "not run at this version"

RUNS = {
    "tests": "make test-all",
    "tests-pyspark-4.2": "make test-pyspark42",
    "tests-pyspark-4.1-connector": "make test-spark SPARK=4.1",
    "tests-pyspark-4.0-connector": "make test-spark SPARK=4.0",
    "interop": "make test-interop JVM_JARS=jars",
    "chaos": "make test-chaos MINUTES=57",
    "kills-at-least-once": "make test-chaos CONTINUOUS=at_least_once KILLS=200",
    "kills-exactly-once": "make test-chaos CONTINUOUS=exactly_once KILLS=200",
    "kills-exactly-once-counts": "make test-chaos CONTINUOUS=exactly_once KILLS=200 ARGS=--counts",
    "kills-exactly-once-windows": "make test-chaos CONTINUOUS=exactly_once KILLS=50 ARGS=--windows",
    "faults-driver": "make test-faults KILLS=200",
    "faults-tasks": 'make test-faults KILLS=50 ARGS="--commit tasks"',
    "soak": "make soak MINUTES=120",
    "fuzz": "make fuzz",
    "fuzz-asan": "make fuzz-asan",
    "bench": "make bench JVM_JARS=jars",
}
"""Names of recorded runs, each with its usual command."""


@dataclass(frozen=True)
class Promise:
    """A row of the page.

    Attributes:
        text: the promise.
        tests: the tests that show it, as `path::name` below `tests/`.
        runs: the long runs that show it.
        limits: what it does not cover.
        suite: the run that includes the tests.
        since: the first version with it.
    """

    text: str
    tests: tuple[str, ...]
    limits: str
    runs: tuple[str, ...] = ()
    suite: str = "tests"
    since: str = "0.2.0"


_FAULTS = "integration/faults/test_exactly_once.py"
_CONTINUOUS = "integration/continuous"
_SPARK = "integration/_connector/spark"

PROMISES: dict[str, tuple[Promise, ...]] = {
    "Reads": (
        Promise(
            "A read returns each visible record of its range once. A stream begins each micro-batch where the previous one ended.",
            (
                "property/test_planning_properties.py::test_limited_batches_one_after_the_other_read_everything_once",
                "property/test_fetch_session_properties.py::test_session_delivers_every_offset_once_and_in_order",
                "integration/_connector/source/test_partition_reader.py::test_every_range_over_transactions_gives_its_visible_records_and_ends_at_its_end",
            ),
            "Records that the cluster itself loses after their acknowledgement. Spark may repeat a micro-batch after a crash, with the same ranges.",
            ("chaos",),
        ),
        Promise(
            "Lost records are an error, [`KAFKA_DATA_LOSS`](errors.md#kafka_data_loss), before anything after the gap is returned: retention, deleted and recreated topics.",
            (
                "property/test_planning_properties.py::test_every_partition_of_a_plan_is_read_or_complete_or_reported",
                "integration/_connector/source/test_data_loss.py::test_partition_offset_changed",
                "integration/_connector/source/test_data_loss.py::test_topic_recreated_while_a_task_reads_it",
            ),
            "`failOnDataLoss=false`. A topic that is recreated while the query is down, without the source option `checkpointLocation` or with brokers before Kafka 2.8.",
            ("chaos",),
        ),
        Promise(
            "A damaged record batch is an error with topic, partition and offset.",
            (
                "integration/_connector/source/test_partition_reader.py::test_a_batch_with_one_wrong_bit_is_an_error_and_only_what_lies_before_it_is_emitted",
            ),
            "`kafka.check.crcs=false`.",
            ("fuzz",),
        ),
        Promise(
            "A read joins no consumer group, and neither a read nor a write creates its topic.",
            (
                f"{_SPARK}/test_parity.py::test_no_consumer_group_comes_into_being_whatever_is_said_of_its_name",
                "integration/_client/client/test_cluster.py::test_missing_topic_is_not_created_by_asking",
            ),
            "Groups that `commitOffsetsToGroup` or `offsetsGroupId` name; the topic of commit markers.",
        ),
    ),
    "Writes": (
        Promise(
            "A finished write is at least once: all in-sync replicas have acknowledged each row.",
            (
                "integration/_connector/sink/test_data_writer.py::test_a_broker_that_goes_away_in_the_middle_costs_no_row_and_doubles_none",
                f"{_SPARK}/test_broker_restart.py::test_a_running_query_writes_everything_once_its_broker_is_back",
            ),
            "Another `kafka.acks`. After a failure, Spark runs tasks and micro-batches again, and their rows are there twice.",
            ("chaos",),
        ),
        Promise(
            "With `deliveryGuarantee=exactly_once`, readers with `read_committed` see each micro-batch once and whole ([exactly once](exactly-once.md)).",
            (
                f"{_FAULTS}::test_a_process_killed_at_any_point_neither_loses_nor_duplicates",
                f"{_FAULTS}::test_a_broker_that_dies_while_a_batch_is_published_neither_loses_nor_duplicates",
                "integration/_connector/sink/test_publisher.py::test_one_of_two_drivers_writes_if_both_publish",
            ),
            "Other readers. Effects of a query outside of Kafka. Executors on several machines are not tested.",
            ("faults-driver", "chaos"),
        ),
        Promise(
            "With `exactlyOnceCommit=tasks` (experimental), these readers see each record once, transaction by transaction.",
            (
                f"{_FAULTS}::test_tasks_that_publish_neither_lose_nor_duplicate_whoever_is_killed",
                "property/test_task_commit_properties.py::test_every_part_of_a_batch_is_visible_once_whoever_dies_or_stands_still",
                "property/test_task_commit_properties.py::test_parts_are_lost_only_by_the_time_after_a_decision_and_are_reported",
            ),
            "A dead driver that is replaced later than a quarter of the transaction timeout: the loss is the error [`SINK_COMMIT_INCOMPLETE`](errors.md#sink_commit_incomplete).",
            ("faults-tasks",),
        ),
        Promise(
            "An exactly-once batch write is visible whole or not at all.",
            (
                f"{_SPARK}/test_exactly_once.py::test_a_batch_write_is_visible_whole_or_not_at_all",
                "integration/_connector/sink/test_publisher.py::test_batch_that_cannot_be_written_whole_is_not_visible_and_holds_no_reader_back",
            ),
            "A job that runs again writes its rows again.",
        ),
        Promise(
            "Rows of a task keep their order in each output partition, over retries and new leaders.",
            (
                "integration/_connector/sink/test_data_writer.py::test_every_row_is_there_once_and_in_order_within_its_partition",
                "integration/_client/client/test_two_brokers.py::test_batches_are_stored_once_and_in_order_though_their_leader_dies",
            ),
            "Rows of different tasks, such as `minPartitions` makes of one partition. `kafka.enable.idempotence=false`. A task that Spark runs again.",
            ("chaos", "faults-driver"),
        ),
    ),
    "Continuous queries": (
        Promise(
            "At least once: no record is lost if a process is killed, at any point of an epoch.",
            (
                "integration/chaos/test_killed_continuous_query.py::test_killed_query_loses_nothing_and_repeats_what_it_may",
                "property/test_continuous_recovery_properties.py::test_every_committed_row_is_in_the_sink_once_whoever_dies_when",
            ),
            "Rows of uncommitted epochs may be written again.",
            ("kills-at-least-once", "chaos"),
        ),
        Promise(
            "With `exactly_once`, readers with `read_committed` see each record once.",
            (
                f"{_CONTINUOUS}/test_exactly_once.py::test_worker_that_is_killed_within_an_epoch_loses_and_doubles_nothing",
                f"{_CONTINUOUS}/test_exactly_once.py::test_driver_that_is_killed_between_brokers_and_checkpoint_loses_and_doubles_nothing",
                "property/test_continuous_recovery_properties.py::test_every_row_is_in_the_log_once_whatever_becomes_of_transactions",
            ),
            "Source and sink in different clusters, which is refused. Effects of your functions.",
            ("kills-exactly-once", "chaos"),
        ),
        Promise(
            "Epochs are committed one at a time, in order and without gaps. Of two drivers with one checkpoint, one commits an epoch.",
            (
                "unit/continuous/epochs/test_coordinator.py::test_epochs_are_committed_one_at_a_time_and_in_order",
                f"{_CONTINUOUS}/test_exactly_once.py::test_second_driver_fences_the_first",
                "protocol/checkpoint/test_epochs_on_s3.py::test_rows_of_every_epoch_follow_one_another_whoever_of_two_drivers_writes_it",
            ),
            "The services of Google and Azure are not tested.",
            ("kills-exactly-once", "kills-at-least-once"),
        ),
        Promise(
            "With `exactly_once`, state by key agrees with the records that are visible.",
            (
                "property/test_continuous_state_properties.py::test_every_count_is_right_whoever_dies_when",
                f"{_CONTINUOUS}/test_state_exactly_once.py::test_counts_are_right_over_kills_of_workers_stops_and_other_numbers_of_lanes",
            ),
            "`at_least_once`: rows of uncommitted epochs may be written again.",
            ("kills-exactly-once-counts",),
        ),
        Promise(
            "With `exactly_once`, each window (experimental) is written once, with all of its rows that are not late.",
            (
                "property/test_continuous_timers_properties.py::test_every_window_is_right_whoever_dies_when",
                "integration/chaos/test_killed_continuous_query.py::test_killed_query_writes_every_window_once_with_all_rows_but_late_ones",
            ),
            "`at_least_once`: a window may be written again, and a row that is read again may be late.",
            ("kills-exactly-once-windows",),
        ),
    ),
    "Checkpoints": (
        Promise(
            "Spark's connector and this one continue from each other's checkpoint, without loss or repetition ([limits](checkpoints.md#move-between-sparks-connector-and-this-one)).",
            (
                f"{_SPARK}/test_checkpoint_interop.py::test_one_goes_on_where_the_other_stopped",
                f"{_SPARK}/test_checkpoint_interop.py::test_an_uncommitted_batch_is_run_again_with_the_same_records",
            ),
            "Batch 0 without its kept start. State that is grouped by `topic` or `partition`, from here to Spark's connector.",
            suite="interop",
        ),
        Promise(
            "Stateful queries of Spark continue with their state after a kill in a micro-batch.",
            (
                "integration/stateful/test_killed_stateful_queries.py::test_stateful_queries_killed_in_a_batch_continue_with_their_state",
            ),
            "The state itself is Spark's.",
        ),
        Promise(
            "An older copy of a checkpoint stops an exactly-once query before it writes a row twice.",
            (
                f"{_SPARK}/test_exactly_once.py::test_an_older_copy_of_the_checkpoint_is_refused_and_nothing_is_written_twice",
            ),
            "Commit markers that were deleted.",
        ),
    ),
    "Outages, time and memory": (
        Promise(
            "A running stream waits for brokers that are away, and then continues ([outages](outages.md)).",
            (
                "integration/_connector/source/test_source_outages.py::test_a_stream_that_has_run_looks_up_through_an_outage",
                "integration/_connector/sink/test_sink_outages.py::test_a_micro_batch_is_committed_once_after_an_outage",
            ),
            "The first contact, batch reads and batch writes: they fail after the times below.",
            ("chaos",),
        ),
        Promise(
            "Each wait for a broker ends: with a deadline, and an error with the broker's address.",
            (
                f"{_SPARK}/test_bad_input.py::test_an_unreachable_broker_is_named_within_30_seconds",
                "protocol/_client/client/test_connection_faults.py::test_silence_ends_with_the_deadline_and_names_the_listener",
                "protocol/_client/client/test_kafka_client.py::test_step_without_a_response_ends_with_its_deadline_and_its_name",
            ),
            "Spark's own waits. Your functions.",
        ),
        Promise(
            "The memory of a reading task does not grow with its range.",
            (
                "integration/_connector/source/test_partition_reader.py::test_memory_stays_bounded_whatever_the_range_and_its_compression",
            ),
            "The size of one record batch: up to `maxDecompressedBatchBytes`.",
            ("bench",),
        ),
        Promise(
            "Memory, descriptors, threads and files of queries stay flat over hours.",
            (),
            "More than the hours of the run.",
            ("soak",),
        ),
    ),
    "Typed values": (
        Promise(
            "Values of JSON, Avro and Protobuf are the same after a way through each format.",
            (
                "property/_typed/codecs/test_round_trips.py::test_values_are_the_same_after_a_way_through_each_format",
                "property/_typed/codecs/avro/test_avro_properties.py::test_values_are_those_that_fastavro_reads",
                "property/_typed/codecs/protobuf/test_protobuf_properties.py::test_messages_of_any_schema_are_read_and_written_as_google_has_them",
                "property/_typed/codecs/json/test_json_properties.py::test_documents_are_read_as_python_reads_them",
            ),
            "The [differences from `from_json`](parity.md#values-in-json-valueformatjson-and-from_json).",
        ),
        Promise(
            "A value that cannot be read affects no other record, and an outage of the registry makes no record bad.",
            (
                "property/_typed/codecs/test_bad_batches.py::test_bad_values_are_located_and_good_ones_stay_in_their_rows",
                f"{_SPARK}/test_typed_schemas.py::test_an_outage_of_the_registry_fails_the_task_and_makes_no_bad_record",
            ),
            "`mode=FAILFAST`, the default: the first bad record ends the query.",
            ("chaos",),
        ),
        Promise(
            "With `exactly_once`, good rows and dead letters are written in the same transaction.",
            (
                f"{_SPARK}/test_dead_letters_kafka.py::test_good_rows_and_dead_letters_are_written_exactly_once_over_a_kill",
            ),
            "Two sinks: a micro-batch or an epoch writes both to one sink, in rows with topics.",
            ("chaos",),
        ),
        Promise(
            "The compiled codec and the plain one return the same rows and write the same bytes.",
            (
                "property/records/test_codec_properties.py::test_both_variants_do_the_same_with_mutated_bytes",
                "property/records/test_codec_properties.py::test_both_variants_encode_the_same_bytes",
            ),
            "Speed.",
            ("fuzz",),
        ),
    ),
    "Options and errors": (
        Promise(
            "An unknown option is refused, with the nearest name. All problems are in one error.",
            (
                "unit/_client/options/catalogue/test_parsed.py::test_all_problems_are_reported_together_in_canonical_spelling",
                "unit/_client/options/catalogue/test_parsed.py::test_unknown_client_properties_are_refused",
                "unit/_client/options/catalogue/test_option_table.py::test_the_nearest_name_is_the_one_that_was_meant",
            ),
            "Keys that Spark itself adds.",
        ),
        Promise(
            "Each condition of an error has an entry with cause and remedy.",
            ("repo/test_error_index.py::test_every_condition_of_the_code_has_a_row_and_every_row_a_condition",),
            "Errors of Spark and Python.",
        ),
    ),
    "Versions": (
        Promise(
            "The package works with Kafka 2.1 or newer and PySpark 4.2 and 4.3, and with 4.0 and 4.1 within [limits](install.md#pyspark-40-and-41).",
            (
                "integration/_client/client/test_broker_versions.py::test_newest_kafka_is_toured",
                "integration/_client/client/test_broker_versions.py::test_kafka_before_4_is_toured",
                "integration/_client/client/test_broker_versions.py::test_broker_that_offers_what_kafka_2_1_did_is_toured",
            ),
            "Kafka 2.1 itself: the broker is 3.9, reduced to its requests. Clusters with brokers of other makers.",
            ("tests-pyspark-4.2", "tests-pyspark-4.1-connector", "tests-pyspark-4.0-connector"),
        ),
    ),
    "Security": (
        Promise(
            "Each login works with each kind of query ([matrix](security-matrix.md)).",
            ("integration/security/test_matrix.py::test_case_of_the_matrix_works",),
            "Kerberos, which `make test-kerberos` tests. A cluster of AWS for AWS_MSK_IAM.",
        ),
        Promise(
            "No text of this package, such as a log line, an error or a plan, shows a secret ([secrets](secrets.md)).",
            (
                "property/test_secret_properties.py::test_no_sequence_of_operations_shows_a_secret",
                "integration/security/test_canary.py::test_no_secret_is_in_anything_that_is_left",
            ),
            "Literal secrets in Spark's own files and user interface, without the redaction of that page.",
        ),
        Promise(
            "Hostile bytes are a result or an error, in bounded time and memory ([fuzzing](fuzzing.md)).",
            (
                "bugs/test_corpus.py::test_corpus_entry_gives_a_result_or_a_typed_error",
                "property/test_key_store_properties.py::test_any_bytes_of_a_store_become_a_result_or_an_error_of_its_option",
            ),
            "[Limits](../SECURITY.md#hostile-broker) of each promise.",
            ("fuzz", "fuzz-asan"),
        ),
        Promise(
            "No byte of a network or a checkpoint becomes code.",
            ("repo/test_code_from_elsewhere.py::test_code_of_a_module_comes_from_no_bytes",),
            "Spark's own pickles.",
        ),
    ),
}

_HEAD = f"""\
# What you can rely on

Each row is a promise, with the tests and the recorded runs that show it. All hold since {{since}}, unless a row has another version.
`make test-all` runs the tests; [runs](#runs) has the commands of the others. The third column has the date and the commit of the last run.
A run counts for this version, {__version__}, until {MAX_COMMITS} more commits have changed the package. Without such a run the column has *not
run at this version*, with the last one if there is one. A failed run is shown as **failed**.

`tools/promises.py` writes this page, from the records in `docs/results`.
"""
_DURABILITY = """
## Defaults that decide what survives

| What | Default | What it decides |
| --- | --- | --- |
"""
_OPTIONS = {
    "deliveryGuarantee": "whether a failure may write rows twice",
    "exactlyOnceCommit": "who commits, with `exactly_once`",
    "failOnDataLoss": "whether lost records end a query",
    "kafka.acks": "how many replicas have a row when its write ends; `all` means all in sync. The topic's `min.insync.replicas` sets how many these are",
    "kafka.enable.idempotence": "whether a batch that is sent again is stored once",
    "kafka.isolation.level": "whether a read returns records of open and aborted transactions",
    "kafka.check.crcs": "whether damaged record batches are noticed",
    "mode": "what a value that cannot be read does",
    "outageTimeout": "how long a running stream waits without progress",
    "kafka.delivery.timeout.ms": "how long a write tries to deliver, outside of the outages that a stream waits for",
    "kafka.transaction.timeout.ms": "when brokers abort the transaction of a dead writer, which until then holds readers back",
    "kafka.default.api.timeout.ms": "how long a look-up takes, with all of its attempts",
    "kafka.request.timeout.ms": "how long one request waits for its response",
    "kafka.socket.connection.setup.timeout.ms": "how long one attempt to connect takes",
    "kafkaConsumer.pollTimeoutMs": "how long a task waits for records of its range that do not become visible",
    "maxDecompressedBatchBytes": "the largest record batch that a task decompresses",
}


def page(results: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the page for the records of runs, by name."""
    return "\n".join(
        [
            _HEAD.format(since=Promise.since),
            *(line for title, rows in PROMISES.items() for line in _chapter(title, rows, results)),
            _DURABILITY + "\n".join(_defaults()),
            "\n## Runs\n\n| Run | Command | When, and with what | Outcome | Counted |\n| --- | --- | --- | --- | --- |",
            *(_run(name, results.get(name)) for name in [*RUNS, *sorted(results.keys() - RUNS.keys())]),
            "",
        ]
    )


def _chapter(title: str, rows: tuple[Promise, ...], results: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    yield f"## {title}\n\n| Promise | Shown by | Last shown | Not covered |\n| --- | --- | --- | --- |"
    for row in rows:
        since = "" if row.since == Promise.since else f" Since {row.since}."
        tests = [f"[`{name}`](../tests/{path})" for path, _, name in (test.partition("::") for test in row.tests)]
        shown = ", ".join([*tests, *(f"[{run}](#runs)" for run in row.runs)])
        yield f"| {row.text}{since} | {shown} | {'; '.join(states(row, results))} | {row.limits} |"
    yield ""


def states(row: Promise, results: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield the outcomes of the runs that show a promise, in words, runs with the same outcome together."""
    runs: dict[str, list[str]] = {}
    for run in (*((row.suite,) if row.tests else ()), *row.runs):
        runs.setdefault(_state(row, run, results.get(run)), []).append(run)
    yield from (f"{', '.join(names)}: {state}" for state, names in runs.items())


def _state(row: Promise, run: str, result: Mapping[str, Any] | None) -> str:
    if result is None:
        return NOT_RUN
    passed = result["passed"]
    if run == row.suite:
        tests = {f"tests/{test}" for test in row.tests}
        if tests & {*result.get("skipped", ())}:
            return NOT_RUN
        # A failure of another test is no failure of this promise.
        passed = passed or not tests & {*result.get("failed", ())}
    if not passed:
        return f"**failed** {result['date'][:10]} at {commit_of(result)}"
    shown = f"{result['date'][:10]} at {commit_of(result)}"
    return shown if is_current(result) else f"{NOT_RUN}; last shown {shown}"


def is_current(result: Mapping[str, Any]) -> bool:
    """Tell whether a run was of this version, and of a commit that is not old."""
    since = commits_since(result["commit"])
    return result["version"] == __version__ and since is not None and since <= MAX_COMMITS


@cache
def commits_since(commit: str) -> int | None:
    """Return how many commits have changed the package since one; None if it is not in the history of this one."""
    if not commit or git("merge-base", commit, "HEAD") != commit:
        return None
    return int(git("rev-list", "--count", f"{commit}..HEAD", "--", "src"))


def _defaults() -> Iterator[str]:
    synced = inspect.signature(CheckpointFiles.create).parameters["durable"].default
    on_disk = "synced to disk, with its directory, before it has its name" if synced else "not synced"
    test = "[`test_files.py`](../tests/unit/checkpoint/test_files.py)"
    yield f"| files that this package writes into a local checkpoint | {on_disk} | a crash of the machine leaves the file or no file ({test}). Spark writes its own files |"
    test = "[`test_version_files.py`](../tests/unit/continuous/state/test_version_files.py)"
    yield f"| changes of state by key, in the checkpoint of a continuous query | synced to disk before their epoch is reported | the same ({test}). The copy beside the executor is not synced: it is built again |"
    test = "[`test_spool.py`](../tests/unit/_connector/sink/test_spool.py)"
    yield f"| spool files of exactly-once writes | not synced | a crash of the machine ends the task or the driver, and the micro-batch runs again ({test}) |"
    for name, effect in _OPTIONS.items():
        option = OPTIONS[name]
        yield f"| [`{name}`](options.md#{option.address.partition('#')[2]}) | {option.facts['default']} | {effect} |"
    yield f"| `taskTimeout` of a continuous query | `{LOST_SECONDS:g}` s | when a silent task, or driver, counts as lost |"
    yield f"| outage of a continuous query's checkpoint | `{CHECKPOINT_OUTAGE_S:g}` s | how long a query that has read waits for its checkpoint |"


def _run(name: str, result: Mapping[str, Any] | None) -> str:
    if result is None:
        return f"| {name} | `{RUNS[name]}` | | {NOT_RUN} | |"
    outcome = "passed" if result["passed"] else "**failed**"
    if not is_current(result):
        outcome += ", but not at this version"
    counts = ", ".join(f"{kind} {count:,}" for kind, count in result["counts"].items())
    seed = f", seed {result['seed']}" if "seed" in result else ""
    return f"| {name} | `{result['command']}` | {conditions(result)}{seed} | {outcome} | {counts} |"


def main() -> None:
    """Print the page."""
    sys.stdout.write(page(read_results()))


if __name__ == "__main__":
    main()
