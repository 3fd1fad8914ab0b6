"""The options with the names of Spark's Kafka connector, our own few beside them, and the keys that Spark itself adds.

Data only. A later version's option is one entry here and one line where `options.parsing` puts it into its field.
Layer: options.
"""

from __future__ import annotations

from pyspark_kafka.offsets import Earliest, Latest, parse_assignment, parse_specific_offsets, parse_timestamps
from pyspark_kafka.options.catalogue.option import READS, WRITES, Option, Scope
from pyspark_kafka.options.parse import scalars
from pyspark_kafka.options.parse.times import duration_ms, moment, moment_of_json

_STRATEGIES = ("subscribe", "subscribePattern", "assign")
_LIMIT_WORDS: dict[str, Earliest | Latest] = {"earliest": Earliest(), "latest": Latest()}
_MS = scalars.whole_number(0, scalars.INT32_MAX, "milliseconds")
_POSITIVE_MS = scalars.whole_number(1, scalars.INT32_MAX, "milliseconds")
_TIME_KIND = "epoch ms, ISO 8601, e.g. `2 hours ago`"
_STREAM_READ = frozenset({Scope.STREAM_READ})
_BATCH_READ = frozenset({Scope.BATCH_READ})
_STREAMS = frozenset({Scope.STREAM_READ, Scope.STREAM_WRITE})
_BATCHES = frozenset({Scope.BATCH_READ, Scope.BATCH_WRITE})


def _offsets(raw: str) -> object:
    word = raw.strip().lower()
    if word in _LIMIT_WORDS:
        return _LIMIT_WORDS[word]
    if raw.lstrip()[:1] not in ("{", "[", '"'):
        raise ValueError(f"must be earliest, latest or JSON of offsets by partition; got {scalars.shorten(raw)}")
    try:
        return parse_specific_offsets(raw)
    except ValueError as error:
        raise ValueError(f"must be earliest, latest or JSON of offsets by partition: {error}") from error


def _timestamps(raw: str) -> object:
    try:
        return parse_timestamps(raw, moment_of_json)
    except ValueError as error:
        raise ValueError(f"must be JSON of times by partition: {error}") from error


def _assignment(raw: str) -> object:
    try:
        return parse_assignment(raw)
    except ValueError as error:
        raise ValueError(f"must be JSON of partitions by topic: {error}") from error


SPARK_OPTIONS: tuple[Option, ...] = (
    Option(
        "subscribe",
        "The topics to read, with commas between them.",
        parse=scalars.topic_names,
        kind="topic names",
        default_doc="one of `subscribe`, `subscribePattern`, `assign` must be given",
        scopes=READS,
        conflicts=_STRATEGIES,
    ),
    Option(
        "subscribePattern",
        "A regular expression (Python's syntax). A topic is read when the expression is found anywhere in its name; "
        "use `^…$` to match whole names. Kafka's internal topics are never read.",
        parse=scalars.pattern,
        kind="regular expression",
        scopes=READS,
        conflicts=_STRATEGIES,
    ),
    Option(
        "assign",
        'The partitions to read: `{"topicA":[0,1],"topicB":[2,4]}`.',
        parse=_assignment,
        kind="JSON",
        scopes=READS,
        conflicts=_STRATEGIES,
    ),
    Option(
        "startingOffsets",
        "Where to start: `earliest`, `latest` (streaming only), or JSON with an offset for each partition or a word "
        'for a whole topic: `{"topicA":{"0":23,"1":"earliest"},"topicB":"earliest"}`; a partition takes the words as '
        "well, or Spark's numbers for them: -2 is earliest, -1 latest. A stream uses "
        "it only when it starts without a checkpoint; partitions that appear later start at earliest.",
        parse=_offsets,
        kind="`earliest`, `latest`, JSON",
        default_doc="`latest` in a streaming read, `earliest` in a batch read",
        scopes=READS,
    ),
    Option(
        "endingOffsets",
        "Where to end, exclusive: `latest`, or JSON as in `startingOffsets`; -1 is latest, -2 is not allowed.",
        parse=_offsets,
        kind="`latest`, JSON",
        default_doc="`latest`",
        scopes=_BATCH_READ,
    ),
    Option(
        "startingTimestamp",
        "Start each partition at its first record of this time or later: epoch milliseconds, ISO 8601 (UTC where it "
        "names no zone), or a time back from now such as `2 hours ago`. Goes before `startingOffsetsByTimestamp`, and "
        "that before `startingOffsets`.",
        parse=moment,
        kind=_TIME_KIND,
        scopes=READS,
    ),
    Option(
        "startingOffsetsByTimestamp",
        'The same for each partition: `{"topicA":{"0":1767225600000,"1":"2026-01-01T00:00:00Z"}}`. It must name all '
        "partitions that are read.",
        parse=_timestamps,
        kind="JSON of times",
        scopes=READS,
    ),
    Option(
        "startingOffsetsByTimestampStrategy",
        "What is done where a partition has no record of the starting time or later: `error`, or `latest` to start at "
        "its end.",
        parse=scalars.words("error", "latest"),
        kind="`error`, `latest`",
        default="error",
        scopes=READS,
    ),
    Option(
        "endingTimestamp",
        "End each partition before its first record of this time or later, or at its end where there is none. Written "
        "as in `startingTimestamp`. Goes before `endingOffsetsByTimestamp`, and that before `endingOffsets`.",
        parse=moment,
        kind=_TIME_KIND,
        scopes=_BATCH_READ,
    ),
    Option(
        "endingOffsetsByTimestamp",
        "The same for each partition, as in `startingOffsetsByTimestamp`.",
        parse=_timestamps,
        kind="JSON of times",
        scopes=_BATCH_READ,
    ),
    Option(
        "failOnDataLoss",
        "Whether a read fails when records of a planned range are gone (deleted topic, retention, offsets out of "
        "range). With false it goes on with what is left.",
        parse=scalars.boolean,
        kind="true, false",
        default=True,
        scopes=READS,
    ),
    Option(
        "includeHeaders",
        "Whether there is a column `headers`.",
        parse=scalars.boolean,
        kind="true, false",
        default=False,
        scopes=READS,
        no_effect_in=WRITES,
    ),
    Option(
        "maxOffsetsPerTrigger",
        "About how many offsets a micro-batch takes at most, shared among partitions by what each has waiting.",
        parse=scalars.whole_number(1, scalars.INT64_MAX, "offsets"),
        kind="whole number",
        default_doc="no limit",
        unit="offsets",
        scopes=_STREAM_READ,
        no_effect_in=_BATCH_READ,
    ),
    Option(
        "maxBytesPerTrigger",
        "About how many bytes a micro-batch takes at most, as brokers store them (mostly compressed). An estimate: a "
        "partition's share goes by the average that an offset of its log takes, which brokers are asked for at each "
        "trigger; the user needs the right to DESCRIBE the cluster. With `maxOffsetsPerTrigger` both hold. Not an "
        "option of Spark's connector.",
        parse=scalars.whole_number(1, scalars.INT64_MAX, "bytes"),
        kind="whole number",
        default_doc="no limit",
        unit="bytes",
        scopes=_STREAM_READ,
        no_effect_in=_BATCH_READ,
    ),
    Option(
        "minOffsetsPerTrigger",
        "How many offsets must be waiting, over all partitions, before there is a micro-batch. The first one of a run "
        "does not wait. An available-now run leaves what is fewer to the next run, and a once trigger reads all, as "
        "with Spark's connector. Not more than `maxOffsetsPerTrigger`.",
        parse=scalars.whole_number(0, scalars.INT64_MAX, "offsets"),
        kind="whole number",
        default_doc="a micro-batch as soon as there is anything",
        unit="offsets",
        scopes=_STREAM_READ,
        no_effect_in=_BATCH_READ,
    ),
    Option(
        "maxTriggerDelay",
        "How long `minOffsetsPerTrigger` is waited for at most: a number with `ms`, `s`, `m`, `h` or `d`, or with the "
        "unit's name (`5 minutes`); a number alone is milliseconds.",
        parse=duration_ms,
        kind="time span, e.g. `90s`",
        default=900_000,
        unit="ms",
        scopes=_STREAM_READ,
        no_effect_in=_BATCH_READ,
    ),
    Option(
        "minPartitions",
        "About how many tasks a read has at least: where there are fewer topic-partitions with anything to read, the "
        "large ones are split by offsets. A hint: there may be a few more or fewer.",
        parse=scalars.whole_number(1, scalars.INT32_MAX, "tasks"),
        kind="whole number",
        default_doc="one task for each topic-partition",
        unit="tasks",
        scopes=READS,
    ),
    Option(
        "maxRecordsPerPartition",
        "How many offsets a task takes at most; what has more is split. Applied before `minPartitions`. Unlike Spark's "
        "connector, a batch read from earliest to latest is split, too: the ends are looked up first.",
        parse=scalars.whole_number(1, scalars.INT64_MAX, "offsets"),
        kind="whole number",
        default_doc="no limit",
        unit="offsets",
        scopes=READS,
    ),
    Option(
        "maxPartitionsPerTask",
        "How many topic-partitions may share a task, as long as they have at most 100,000 offsets together (or "
        "`maxRecordsPerPartition`, if given). For topics of many partitions with few records each: a task costs Spark "
        "milliseconds, and partitions that share one share fetch requests. In a batch read, `earliest` and `latest` "
        "are then what they are when it is planned. Not an option of Spark's Kafka connector.",
        parse=scalars.whole_number(1, scalars.INT32_MAX, "topic-partitions"),
        kind="whole number",
        default=1,
        unit="topic-partitions",
        scopes=READS,
    ),
    Option(
        "pushDownPredicate",
        "Whether filters on `topic`, `partition`, `offset` and `timestamp` decide what is read at all; needs Spark's "
        "`spark.sql.python.filterPushdown.enabled`. Only for a DataFrame that is filtered once: Spark mixes up the "
        "filters of several queries of one `load()`, see [batch reads](batch-reads.md#filters). Not an option of "
        "Spark's Kafka connector.",
        parse=scalars.boolean,
        kind="true, false",
        default=False,
        scopes=_BATCH_READ,
    ),
    Option(
        "fetchOffset.numRetries",
        "How often an offset look-up is tried in all, the first time included.",
        parse=scalars.whole_number(1, scalars.INT32_MAX, "attempts"),
        kind="whole number",
        default=3,
        unit="attempts",
        scopes=READS,
    ),
    Option(
        "fetchOffset.retryIntervalMs",
        "The pause between two tries of an offset look-up.",
        parse=_MS,
        kind="whole number",
        default=1_000,
        unit="ms",
        scopes=READS,
    ),
    Option(
        "kafkaConsumer.pollTimeoutMs",
        "The longest time a task waits without any progress before it fails. In a stream an outage of brokers is "
        "waited out longer, see `outageTimeout`.",
        parse=_POSITIVE_MS,
        kind="whole number",
        default=120_000,
        unit="ms",
        scopes=READS,
    ),
    Option(
        "outageTimeout",
        "How long a streaming query that has run waits, in one outage, for brokers that are away; then it fails. `0` "
        "waits for nothing. Written as in `maxTriggerDelay`; a source and a sink have one each. Batch reads and "
        "writes, and a query that has not reached the cluster yet, fail after the times of `kafka.*`. See "
        "[outages](outages.md). Not an option of Spark's connector.",
        parse=duration_ms,
        kind="time span, e.g. `30m`",
        default=600_000,
        unit="ms",
        scopes=_STREAMS,
        no_effect_in=_BATCHES,
    ),
    Option(
        "groupIdPrefix",
        "Accepted for a query's sake that has it: no consumer group is joined, so none has a name.",
        parse=scalars.text,
        default_doc="`spark-kafka-source` in a streaming read, `spark-kafka-relation` in a batch read",
        scopes=READS,
    ),
    Option(
        "checkpointLocation",
        "The query's own `checkpointLocation` once more, for the source, which Spark does not tell it: a local path, "
        "or a URI that pyarrow opens (`s3://`, `gs://`, `abfs://`, `hdfs://`). With it the source keeps where the "
        "query started, and its topics' ids, in `sources/<sourceIndex>` of the checkpoint, where Spark's own connector "
        "keeps the first of them. See [checkpoints](checkpoints.md). An exactly-once write knows the query and its "
        "batches by the `checkpointLocation` of the writer, which therefore must be an option, not a setting. Not an "
        "option of Spark's connector.",
        kind="path or URI",
        parse=scalars.text,
        default_doc="not known",
        scopes=_STREAM_READ | {Scope.STREAM_WRITE},
    ),
    Option(
        "sourceIndex",
        "Which of the query's sources this is, counted from 0, where a query has several; for `checkpointLocation`. "
        "Not an option of Spark's connector.",
        parse=scalars.whole_number(0, scalars.INT32_MAX, "sources"),
        kind="whole number",
        default=0,
        scopes=_STREAM_READ,
    ),
    Option(
        "topic",
        "The topic of every row; it goes before a column `topic`.",
        parse=scalars.topic_name,
        kind="topic name",
        default_doc="each row's column `topic`",
        scopes=WRITES,
    ),
    Option(
        "identityHeaders",
        "Whether each record gets headers that say where it comes from, so that readers can drop what was written "
        "twice: `pyspark-kafka-query`, `-batch`, `-partition`, `-index`; see "
        "[identity headers](writes.md#identity-headers). Not an option of Spark's connector.",
        parse=scalars.boolean,
        kind="true, false",
        default=False,
        scopes=WRITES,
    ),
    Option(
        "deliveryGuarantee",
        "`at_least_once`: a task that is tried again, and a micro-batch that is run again, may write records twice. "
        "`exactly_once`: each micro-batch, or batch write, is visible to readers with `read_committed` once and whole, "
        "or not at all. See [exactly once](exactly-once.md). Not an option of Spark's connector.",
        parse=scalars.words("at_least_once", "exactly_once"),
        kind="`at_least_once`, `exactly_once`",
        default="at_least_once",
        scopes=WRITES,
    ),
    Option(
        "commitTopic",
        "Where exactly-once writes note which micro-batches they have committed; made if it is not there. Not an "
        "option of Spark's connector.",
        parse=scalars.topic_name,
        kind="topic name",
        default="pyspark_kafka_commits",
        scopes=WRITES,
    ),
    Option(
        "spoolLocation",
        "Where the tasks of an exactly-once write put what they have encoded, when it is more than they return to the "
        "driver: a path or URI that driver and executors share. Not an option of Spark's connector.",
        parse=scalars.text,
        kind="path or URI",
        default_doc="`spool` in the checkpoint; none in a batch write",
        scopes=WRITES,
    ),
    Option(
        "spoolThresholdBytes",
        "How many encoded bytes a task of an exactly-once write returns to the driver; what is more goes to "
        "`spoolLocation`. What all tasks return must stay below `spark.driver.maxResultSize`; see "
        "[exactly once](exactly-once.md#what-tasks-return). Not an option of Spark's connector.",
        parse=scalars.whole_number(0, scalars.INT32_MAX, "bytes"),
        kind="whole number",
        default=256 << 10,
        unit="bytes",
        scopes=WRITES,
    ),
    Option(
        "maxBufferedBytesPerTask",
        "The most fetched bytes a reading task holds at a time. Not an option of Spark's connector.",
        parse=scalars.whole_number(1 << 20, scalars.INT32_MAX, "bytes"),
        kind="whole number",
        default=64 << 20,
        unit="bytes",
        scopes=READS,
    ),
    Option(
        "maxDecompressedBatchBytes",
        "The most bytes that one record batch may decompress to; a larger one is refused. Not an option of Spark's "
        "connector.",
        parse=scalars.whole_number(1 << 10, scalars.INT32_MAX, "bytes"),
        kind="whole number",
        default=256 << 20,
        unit="bytes",
        scopes=READS,
    ),
)
