"""The options with the names of Spark's Kafka connector, and the connector's own additions.

Data only.
"""

from __future__ import annotations

from pyspark_kafka._client.options.catalogue.option import (
    BATCH_READ,
    BATCHES,
    READS,
    STREAM_READ,
    STREAMS,
    WRITES,
    Option,
    Scope,
)
from pyspark_kafka._client.options.catalogue.parity import OURS, SAME, TIMES
from pyspark_kafka._client.options.parse import offsets_json, scalars
from pyspark_kafka._client.options.parse.times import duration_ms, moment

_STRATEGIES = ("subscribe", "subscribePattern", "assign")
_EDGES = "range_edges"
_TIME_KIND = "epoch ms, ISO 8601, e.g. `2 hours ago`"
_OFFSETS_PARITY = (
    "same; an offset below -2 is refused at once, words for whole topics need a newer connector than 4.2, words for "
    "partitions are added"
)

_READ_OPTIONS: tuple[Option, ...] = (
    Option(
        "subscribe",
        "The topics to read, separated by commas.",
        parity="same; a name that Kafka does not allow is refused at once",
        field="subscription.topics",
        parse=scalars.topic_names,
        kind="topic names",
        default_doc="one of `subscribe`, `subscribePattern`, `assign` is required",
        scopes=READS,
        conflicts=_STRATEGIES,
    ),
    Option(
        "subscribePattern",
        "A regular expression (Python's syntax). A topic is read if the expression is found anywhere in its name; "
        "use `^…$` to match whole names. Kafka's internal topics are never read.",
        parity="same, found anywhere in the name; Java's syntax there",
        field="subscription.pattern",
        parse=scalars.pattern,
        kind="regular expression",
        scopes=READS,
        conflicts=_STRATEGIES,
    ),
    Option(
        "assign",
        'The partitions to read: `{"topicA":[0,1],"topicB":[2,4]}`.',
        parity="same; a partition that is listed twice is refused",
        field="subscription.topic_partitions",
        parse=offsets_json.assignment,
        kind="JSON",
        scopes=READS,
        conflicts=_STRATEGIES,
    ),
    Option(
        "startingOffsets",
        "Where to start: `earliest`, `latest` (streaming only), or JSON with an offset for each partition or a word "
        'for a whole topic: `{"topicA":{"0":23,"1":"earliest"},"topicB":"earliest"}`. A partition also accepts the '
        "words, or Spark's numbers for them: -2 is earliest, -1 is latest. A stream uses it only if it starts without "
        "a checkpoint; partitions that appear later start at earliest.",
        parity=_OFFSETS_PARITY,
        resolved_by=_EDGES,
        parse=offsets_json.offsets,
        kind="`earliest`, `latest`, JSON",
        default_doc="`latest` in a streaming read, `earliest` in a batch read",
        scopes=READS,
    ),
    Option(
        "endingOffsets",
        "Where to end, exclusive: `latest`, or JSON as in `startingOffsets`; -1 is latest, -2 is not allowed.",
        parity=_OFFSETS_PARITY,
        resolved_by=_EDGES,
        parse=offsets_json.offsets,
        kind="`latest`, JSON",
        default_doc="`latest`",
        scopes=BATCH_READ,
    ),
    Option(
        "startingTimestamp",
        "Start each partition at its first record of this time or later: epoch milliseconds, ISO 8601 (UTC if it "
        "names no zone), or a time relative to now such as `2 hours ago`. Takes precedence over "
        "`startingOffsetsByTimestamp`, which takes precedence over `startingOffsets`.",
        parity=TIMES,
        resolved_by=_EDGES,
        parse=moment,
        kind=_TIME_KIND,
        scopes=READS,
    ),
    Option(
        "startingOffsetsByTimestamp",
        "As `startingTimestamp`, but with a time for each partition: "
        '`{"topicA":{"0":1767225600000,"1":"2026-01-01T00:00:00Z"}}`. It must name all partitions that are read.',
        parity=TIMES,
        resolved_by=_EDGES,
        parse=offsets_json.timestamps,
        kind="JSON of times",
        scopes=READS,
    ),
    Option(
        "startingOffsetsByTimestampStrategy",
        "What to do if a partition has no record of the starting time or later: `error`, or `latest` to start at its "
        "end.",
        parity=SAME,
        field="read.start_at_latest_without_match",
        parse=scalars.choice({"error": False, "latest": True}),
        kind="`error`, `latest`",
        default_doc="`error`",
        scopes=READS,
    ),
    Option(
        "endingTimestamp",
        "End each partition before its first record of this time or later, or at its end if there is none. Has the "
        "forms of `startingTimestamp`. Takes precedence over `endingOffsetsByTimestamp`, which takes precedence over "
        "`endingOffsets`.",
        parity=f"{TIMES}; in a stream it is refused, and ignored there",
        resolved_by=_EDGES,
        parse=moment,
        kind=_TIME_KIND,
        scopes=BATCH_READ,
    ),
    Option(
        "endingOffsetsByTimestamp",
        "As `endingTimestamp`, but with a time for each partition, in the form of `startingOffsetsByTimestamp`.",
        parity=TIMES,
        resolved_by=_EDGES,
        parse=offsets_json.timestamps,
        kind="JSON of times",
        scopes=BATCH_READ,
    ),
    Option(
        "failOnDataLoss",
        "Whether a read fails if records of a planned range are gone (deleted topic, retention, offsets out of "
        "range). If false, it continues with the remaining records.",
        parity="same; in addition, a recreated topic is detected by its id",
        field="read.fail_on_data_loss",
        parse=scalars.boolean,
        kind="true, false",
        scopes=READS,
    ),
    Option(
        "includeHeaders",
        "Whether rows have a column `headers`.",
        parity=SAME,
        field="read.include_headers",
        parse=scalars.boolean,
        kind="true, false",
        scopes=READS,
        no_effect_in=WRITES,
    ),
    Option(
        "maxOffsetsPerTrigger",
        "The maximum number of offsets in a micro-batch, roughly, shared among partitions in proportion to their "
        "available offsets.",
        parity="same shares; 0 is refused here, and makes no progress there",
        field="stream_read.max_offsets_per_trigger",
        parse=scalars.whole_number(1, scalars.INT64_MAX, "offsets"),
        kind="whole number",
        default_doc="no limit",
        unit="offsets",
        scopes=STREAM_READ,
        no_effect_in=BATCH_READ,
    ),
    Option(
        "maxBytesPerTrigger",
        "The maximum number of bytes in a micro-batch, roughly, as brokers store them (usually compressed). An "
        "estimate: a partition's share is based on the average size of an offset in its log, which is looked up at "
        "each trigger; the user needs the right to DESCRIBE the cluster. Together with `maxOffsetsPerTrigger`, both "
        "limits apply.",
        parity=OURS,
        field="stream_read.max_bytes_per_trigger",
        parse=scalars.whole_number(1, scalars.INT64_MAX, "bytes"),
        kind="whole number",
        default_doc="no limit",
        unit="bytes",
        scopes=STREAM_READ,
        no_effect_in=BATCH_READ,
    ),
    Option(
        "minOffsetsPerTrigger",
        "The minimum number of available offsets, over all partitions, for a micro-batch to start. The first "
        "micro-batch of a run does not wait. An available-now run leaves a smaller number to the next run, and a once "
        "trigger reads all, as with Spark's connector. Not more than `maxOffsetsPerTrigger`.",
        parity=SAME,
        field="stream_read.min_offsets_per_trigger",
        parse=scalars.whole_number(0, scalars.INT64_MAX, "offsets"),
        kind="whole number",
        default_doc="a micro-batch starts as soon as any offset is available",
        unit="offsets",
        scopes=STREAM_READ,
        no_effect_in=BATCH_READ,
    ),
    Option(
        "maxTriggerDelay",
        "The maximum wait for `minOffsetsPerTrigger`: a number with `ms`, `s`, `m`, `h` or `d`, or with the name of "
        "the unit (`5 minutes`); a number alone is milliseconds.",
        parity="same; names of units such as `5 minutes` are added",
        field="stream_read.max_trigger_delay_ms",
        parse=duration_ms,
        kind="time span, e.g. `90s`",
        unit="ms",
        scopes=STREAM_READ,
        no_effect_in=BATCH_READ,
    ),
    Option(
        "minPartitions",
        "The minimum number of tasks of a read, roughly: if fewer topic-partitions have records to read, the large "
        "ones are split by offsets. A hint: there may be a few more or fewer.",
        parity="same; neither split nor whole ranges have a preferred executor",
        field="read.min_partitions",
        parse=scalars.whole_number(1, scalars.INT32_MAX, "tasks"),
        kind="whole number",
        default_doc="one task for each topic-partition",
        unit="tasks",
        scopes=READS,
    ),
    Option(
        "maxRecordsPerPartition",
        "The maximum number of offsets in one task; a larger range is split. Applied before `minPartitions`. Unlike "
        "with Spark's connector, a batch read from earliest to latest is split as well: its ends are looked up first.",
        parity="same in a stream; a batch from earliest to latest is not split there",
        field="read.max_records_per_partition",
        parse=scalars.whole_number(1, scalars.INT64_MAX, "offsets"),
        kind="whole number",
        default_doc="no limit",
        unit="offsets",
        scopes=READS,
    ),
    Option(
        "maxPartitionsPerTask",
        "The maximum number of topic-partitions that share a task, as long as they have at most 100,000 offsets "
        "together (or `maxRecordsPerPartition`, if set). For topics with many partitions and few records in each: a "
        "task costs Spark milliseconds, and partitions that share one share fetch requests. In a batch read, "
        "`earliest` and `latest` are then looked up when it is planned.",
        parity=OURS,
        field="read.max_partitions_per_task",
        parse=scalars.whole_number(1, scalars.INT32_MAX, "topic-partitions"),
        kind="whole number",
        unit="topic-partitions",
        scopes=READS,
    ),
    Option(
        "pushDownPredicate",
        "Whether filters on `topic`, `partition`, `offset` and `timestamp` restrict what is read; needs Spark's "
        "`spark.sql.python.filterPushdown.enabled`. Only for a DataFrame that is filtered once: Spark mixes up the "
        "filters of several queries of one `load()`, see [batch reads](batch-reads.md#filters).",
        parity=OURS,
        field="batch_read.push_down_predicate",
        parse=scalars.boolean,
        kind="true, false",
        scopes=BATCH_READ,
    ),
    Option(
        "fetchOffset.numRetries",
        "The number of attempts of an offset look-up, the first included.",
        parity="same; an attempt that failed because of a deadline or missing rights is not repeated",
        field="read.fetch_offset_attempts",
        parse=scalars.whole_number(1, scalars.INT32_MAX, "attempts"),
        kind="whole number",
        unit="attempts",
        scopes=READS,
    ),
    Option(
        "fetchOffset.retryIntervalMs",
        "The pause between two attempts of an offset look-up.",
        parity=SAME,
        field="read.fetch_offset_retry_interval_ms",
        parse=scalars.whole_number(0, scalars.INT32_MAX, "milliseconds"),
        kind="whole number",
        unit="ms",
        scopes=READS,
    ),
    Option(
        "partition.metadata.cache.ttl.ms",
        "The maximum age of the list of partitions, where `kafka.metadata.max.age.ms` is not set; -1 leaves it at the "
        "default of that option.",
        parity="there, the end of a micro-batch can be as old; here it is always looked up",
        resolved_by="connection",
        parse=scalars.off_or_number(-1, 1, scalars.INT32_MAX, "milliseconds"),
        kind="whole number",
        default=-1,
        unit="ms",
        scopes=STREAM_READ,
        no_effect_in=BATCH_READ,
    ),
    Option(
        "kafkaConsumer.pollTimeoutMs",
        "The maximum time a task waits without any progress before it fails. Bytes that arrive are progress. Time for "
        "which brokers throttle the task is not counted, up to five times this time in all. In a stream, a task waits "
        "longer for an outage of brokers to end, see `outageTimeout`.",
        parity="there, the limit of one poll, with `spark.network.timeout` as its default",
        field="fetch.poll_timeout_ms",
        parse=scalars.whole_number(1, scalars.INT32_MAX, "milliseconds"),
        kind="whole number",
        unit="ms",
        scopes=READS,
    ),
    Option(
        "outageTimeout",
        "The maximum time a streaming query that has run waits for brokers in one outage before it fails; with `0` it "
        "does not wait. Has the forms of `maxTriggerDelay`; a source and a sink have one each. Batch reads and "
        "writes, and a query that has not reached the cluster yet, fail after the timeouts of `kafka.*`. See "
        "[outages](outages.md).",
        parity=OURS,
        field="stream_read.outage_timeout_ms",
        also=("fetch.outage_timeout_ms", "write.outage_timeout_ms"),
        parse=duration_ms,
        kind="time span, e.g. `30m`",
        unit="ms",
        scopes=STREAMS,
        no_effect_in=BATCHES,
    ),
    Option(
        "commitOffsetsToGroup",
        "A consumer group to which the ends of finished micro-batches, or of epochs of a continuous query with "
        "`at_least_once`, are committed, so that Kafka's own tools show where the query is. The commits run "
        "next to the query, at most once a second. They are not read back, and a failure is a warning. The group must "
        "belong to the query alone and have no members. See [operations](operations.md#kafkas-own-tools).",
        parity=OURS,
        field="stream_read.committed_group",
        parse=scalars.text,
        kind="group name",
        default_doc="none",
        scopes=STREAM_READ,
    ),
    Option(
        "warnHeadroom",
        "Warns in the driver's log if brokers may delete the next record of a partition within this time, by "
        "`retention.ms` or `retention.bytes` of its topic. Has the forms of `maxTriggerDelay`. Looked up when a "
        "micro-batch begins, at most once a minute, next to the query. Micro-batches only. See "
        "[operations](operations.md#before-records-are-lost).",
        parity=OURS,
        field="stream_read.warn_headroom_ms",
        parse=duration_ms,
        kind="time span, e.g. `6h`",
        default_doc="none",
        unit="ms",
        scopes=STREAM_READ,
    ),
    Option(
        "groupIdPrefix",
        "Accepted for compatibility and ignored: this connector does not use consumer groups.",
        parity="there, the start of consumer group names",
        field="read.group_id_prefix",
        parse=scalars.text,
        default_doc="`spark-kafka-source` in a streaming read, `spark-kafka-relation` in a batch read",
        scopes=READS,
    ),
    Option(
        "checkpointLocation",
        "The query's own `checkpointLocation`, set for the source as well, because Spark does not pass it on: a "
        "path, or a URI that pyarrow opens (`s3://`, `gs://`, `abfs://`, `hdfs://`). An absolute path is on Hadoop's "
        "default file system if `HADOOP_CONF_DIR` is set, as in Spark; otherwise it is local. With it the source keeps "
        "where the query started, and its topics' ids, in `sources/<sourceIndex>` of the checkpoint, where Spark's "
        "own connector keeps the first of them. See [checkpoints](checkpoints.md). An exactly-once write identifies "
        "the query and its batches by the `checkpointLocation` of the writer, which therefore must be an option, not a "
        "setting. A write with a schema registry keeps there which schemas it writes with, until options or columns "
        "are changed.",
        parity=OURS,
        field="stream_read.checkpoint_location",
        also=("exactly_once.checkpoint_location", "write.checkpoint_location"),
        kind="path or URI",
        parse=scalars.text,
        default_doc="not known",
        scopes=STREAM_READ | {Scope.STREAM_WRITE},
    ),
    Option(
        "sourceIndex",
        "The number of this source, counted from 0, if a query has several sources, or its name, if sources have names "
        "([checkpoints](checkpoints.md#named-sources)); for `checkpointLocation`.",
        parity=OURS,
        field="stream_read.source_index",
        parse=scalars.source_name,
        kind="whole number or name",
        scopes=STREAM_READ,
    ),
)

_WRITE_OPTIONS: tuple[Option, ...] = (
    Option(
        "topic",
        "The topic of every row; takes precedence over a column `topic`.",
        parity="same; a name that Kafka does not allow is refused at once",
        field="write.topic",
        parse=scalars.topic_name,
        kind="topic name",
        default_doc="each row's column `topic`",
        scopes=WRITES,
    ),
    Option(
        "identityHeaders",
        "Whether each record has headers that identify its source, so that readers can drop duplicates: "
        "`pyspark-kafka-query`, `-batch`, `-partition`, `-index`; see "
        "[identity headers](writes.md#identity-headers).",
        parity=OURS,
        field="write.identity_headers",
        parse=scalars.boolean,
        kind="true, false",
        scopes=WRITES,
    ),
    Option(
        "deliveryGuarantee",
        "`at_least_once`: a task that is retried, and a micro-batch that runs again, may write records twice. "
        "`exactly_once`: each micro-batch, or batch write, is visible to readers with `read_committed` once and whole, "
        "or not at all. See [exactly once](exactly-once.md); a [continuous query](continuous.md#exactly-once) needs "
        "Kafka as its source for it.",
        parity=OURS,
        resolved_by="write",
        parse=scalars.words("at_least_once", "exactly_once"),
        kind="`at_least_once`, `exactly_once`",
        default="at_least_once",
        scopes=WRITES,
    ),
    Option(
        "exactlyOnceCommit",
        "Who sends the records of an exactly-once micro-batch. `driver`: the driver, in one transaction. `tasks`: each "
        "task, in a transaction of its own, which the driver commits: the throughput grows with the executors, and a "
        "micro-batch becomes visible transaction by transaction. Experimental: `tasks` may change or be removed in any "
        "release before 1.0. See [exactly once](exactly-once.md#when-tasks-publish). No effect in a continuous query.",
        parity=OURS,
        field="exactly_once.commit",
        parse=scalars.words("driver", "tasks"),
        kind="`driver`, `tasks`",
        scopes=frozenset({Scope.STREAM_WRITE}),
    ),
    Option(
        "commitTopic",
        "The topic where exactly-once writes record which micro-batches are committed; created if it does not exist.",
        parity=OURS,
        field="exactly_once.commit_topic",
        parse=scalars.topic_name,
        kind="topic name",
        scopes=WRITES,
    ),
    Option(
        "spoolLocation",
        "The location where tasks of an exactly-once write put the encoded records that they do not return to the "
        "driver: a path or URI that driver and executors share. Unused with `exactlyOnceCommit` `tasks`.",
        parity=OURS,
        field="exactly_once.spool_location",
        parse=scalars.text,
        kind="path or URI",
        default_doc="`spool` in the checkpoint; none in a batch write",
        scopes=WRITES,
    ),
    Option(
        "spoolThresholdBytes",
        "The maximum of encoded bytes that a task of an exactly-once write returns to the driver; the others go to "
        "`spoolLocation`. All tasks together must return less than `spark.driver.maxResultSize`; see "
        "[exactly once](exactly-once.md#size-of-task-results). Unused with `exactlyOnceCommit` `tasks`.",
        parity=OURS,
        field="exactly_once.spool_threshold_bytes",
        parse=scalars.whole_number(0, scalars.INT32_MAX, "bytes"),
        kind="whole number",
        unit="bytes",
        scopes=WRITES,
    ),
    Option(
        "offsetsGroupId",
        "The consumer group in which an exactly-once [continuous query](continuous-operations.md#exactly-once) keeps "
        "where its source continues. It must be the query's own, and stay the same. No effect in other writes.",
        parity=OURS,
        field="exactly_once.offsets_group_id",
        parse=scalars.text,
        kind="group name",
        default_doc="`pyspark-kafka-` and the query's id",
        scopes=frozenset({Scope.STREAM_WRITE}),
    ),
    Option(
        "maxTransactionMarkersPerSecond",
        "The maximum of transaction markers that the tasks of an exactly-once "
        "[continuous query](continuous-operations.md#longer-epochs) have brokers write each second, on average: beyond "
        "it, epochs get longer. No effect in other writes.",
        parity=OURS,
        field="exactly_once.max_markers_per_second",
        parse=scalars.whole_number(1, scalars.INT32_MAX, "markers"),
        kind="whole number",
        scopes=frozenset({Scope.STREAM_WRITE}),
    ),
)

_MEMORY_OPTIONS: tuple[Option, ...] = (
    Option(
        "maxBufferedBytesPerTask",
        "The maximum of fetched bytes that a reading task holds at one time.",
        parity=OURS,
        field="fetch.max_buffered_bytes",
        parse=scalars.whole_number(1 << 20, scalars.INT32_MAX, "bytes"),
        kind="whole number",
        unit="bytes",
        scopes=READS,
    ),
    Option(
        "maxDecompressedBatchBytes",
        "The maximum size of one record batch once decompressed; a larger one is refused.",
        parity=OURS,
        field="fetch.max_decompressed_bytes",
        parse=scalars.whole_number(1 << 10, scalars.INT32_MAX, "bytes"),
        kind="whole number",
        unit="bytes",
        scopes=READS,
    ),
)

SPARK_OPTIONS: tuple[Option, ...] = (*_READ_OPTIONS, *_WRITE_OPTIONS, *_MEMORY_OPTIONS)
