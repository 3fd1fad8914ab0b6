"""`pyspark_kafka.lag`: how far a query or a consumer group is behind."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark_kafka._client.client.cluster.pool import borrow_client
from pyspark_kafka._client.client.waiting.deadline import Deadline
from pyspark_kafka._ops.operations.lag.compute import with_rates
from pyspark_kafka._ops.operations.lag.measure import measure_lag
from pyspark_kafka._ops.operations.lag.positions import (
    LagPositions,
    ahead_of_checkpoint,
    checkpoint_positions,
    group_positions,
)
from pyspark_kafka._ops.operations.settings import resolve_settings
from pyspark_kafka.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pyspark_kafka._base.model import IsolationLevel
    from pyspark_kafka._client.options import ConnectionOptions
    from pyspark_kafka._ops.operations.lag.values import LagReport

_LOG = logging.getLogger(__name__)

DEFAULT_TIMEOUT_S = 15.0


def lag(
    options: Mapping[str, Any],
    *,
    checkpoint: str | None = None,
    group: str | None = None,
    topics: Collection[str] | None = None,
    timeout_s: float = DEFAULT_TIMEOUT_S,
    times: bool = True,
    before: LagReport | None = None,
) -> LagReport:
    """Return the lag of a query or a consumer group, by partition.

    Unknown values are None, with their reason in `missing`: an unreachable broker, a missing right, a deleted
    topic. Nothing on the cluster is changed. Needs no Spark.

    Runs on: any program; blocks, for about `timeout_s` at most.

    Args:
        options: of a connection, or of a whole query, as Spark takes them; the prefix `kafka.` may be missing. With
            `kafka.isolation.level` read_committed, the end of a log is its last stable offset.
        checkpoint: the checkpoint of a query, of micro-batches or continuous: its position is the end of the last batch
            that it has finished. A path, or a URL as for option `checkpointLocation`.
        group: a consumer group, whoever commits its positions. One of `checkpoint` and `group` is needed.
        topics: only these; None: all that there are positions of.
        timeout_s: seconds for everything. A broker that is silent costs half of it at most.
        times: whether to read one record at each position that is behind, for its time. Without it there are no
            seconds behind, and no headroom by age.
        before: an earlier report of the same; rates are then those between both.

    Raises:
        OptionError: the options are not valid, not one of `checkpoint` and `group` is given, or there are no positions.
        CheckpointError: the checkpoint cannot be read, or has no position of a Kafka source.
        BrokerError: the group's positions cannot be fetched.
        AccessError: the login is refused, or the user may not describe the group.
        TransportError, DeadlineError: no broker can be reached.

    Example:
        >>> lag({"kafka.bootstrap.servers": "localhost:9092"}, group="orders").worst(3)  # doctest: +SKIP
    """
    if (checkpoint is None) == (group is None):
        raise OptionError(
            "Lag is measured from the positions of either a checkpoint or a consumer group. "
            f"{'None' if group is None else 'Both'} was named.",
            condition="POSITIONS_NOT_NAMED",
            hint="Name one of checkpoint and group.",
        )
    settings = resolve_settings(options).with_time(timeout_s * 1000)
    if settings.unused and before is None:
        _LOG.warning(
            "Options of readers have no effect on the lag: %s.", ", ".join(f"'{each}'" for each in settings.unused)
        )
    report = look(
        settings.connection,
        str(group) if checkpoint is None else checkpoint_positions(checkpoint),
        topics,
        timeout_s=timeout_s,
        isolation_level=settings.isolation_level,
        times=times,
    )
    return report if before is None else with_rates(report, before)


def look(
    connection: ConnectionOptions,
    positions: LagPositions | str,
    topics: Collection[str] | None,
    *,
    timeout_s: float,
    isolation_level: IsolationLevel,
    times: bool = True,
) -> LagReport:
    """Compare positions with the logs, once.

    Runs on: driver and executor; blocks.

    Args:
        connection: the options of the cluster.
        positions: of a checkpoint, or the name of the consumer group whose positions count.
        topics: only these; None: all that there are positions of.
        timeout_s: seconds for everything.
        isolation_level: what counts as the end of a log.
        times: as in `lag`.

    Raises:
        OptionError, BrokerError, AccessError, TransportError, DeadlineError: as `lag`.
    """
    deadline = Deadline(timeout_s * 1000)
    with borrow_client(connection) as client:
        if isinstance(positions, str):
            found = group_positions(client, positions)
        else:
            found = ahead_of_checkpoint(client, positions)
        return measure_lag(client, only_topics(found, topics), deadline, isolation_level=isolation_level, times=times)


def only_topics(positions: LagPositions, topics: Collection[str] | None) -> LagPositions:
    """Return the positions in these topics.

    Raises:
        OptionError: there are none.
    """
    wanted = None if topics is None else set(topics)
    partitions = {tp: found for tp, found in positions.partitions.items() if wanted is None or tp.topic in wanted}
    errors = {tp: found for tp, found in positions.errors.items() if wanted is None or tp.topic in wanted}
    if not partitions and not errors:
        named = "" if wanted is None else f" in {', '.join(sorted(wanted))}"
        known = sorted({tp.topic for tp in positions.partitions})
        raise OptionError(
            f"There are no positions of {positions.origin}{named}: it does not exist, or has read nothing yet. "
            "Nothing was measured.",
            condition="NO_POSITIONS",
            hint=f"Name topics that it reads: {', '.join(known[:5])}."
            if known
            # Brokers silently leave out topics that a user may not describe.
            else "Check its name, and whether this user may describe the topics that it reads.",
            parameters={"origin": positions.origin},
        )
    return replace(positions, partitions=partitions, errors=errors)
