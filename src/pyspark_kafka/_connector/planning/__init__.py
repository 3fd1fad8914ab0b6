"""The arithmetic of a source: edges to offsets, limits to ends of micro-batches, ranges, splits, tasks, data loss.

- `resolve`: the offset of each partition for an edge; `record_filter`: filters as bounds of a read.
- `ranges`: the ranges of a micro-batch and their lost records; `rate_limit`, `byte_limit`: its end; `available_now`:
  its snapshot.
- `task_ranges`: ranges to tasks; `open_ends`: ends that a batch read leaves to them; `continuous`: starts and shares of
  a continuous read.
- `data_loss`: lost records as a value; `lag`: the one computation of lag; `retention`: the time until brokers may
  delete unread records.

Entry points: `plan_ranges` for a micro-batch, `open_ends.split_planned` for a batch read, `plan_continuous` for a
continuous read.
Invariant: pure. Offsets of brokers and values of options are passed as plain mappings and numbers, so a plan is a
function of its arguments.
"""

from pyspark_kafka._connector.planning.available_now import check_available_now
from pyspark_kafka._connector.planning.byte_limit import byte_limit
from pyspark_kafka._connector.planning.continuous import (
    ContinuousPlan,
    EndedPlan,
    end_plan,
    plan_continuous,
    share_partitions,
)
from pyspark_kafka._connector.planning.data_loss import (
    DataLoss,
    DataLossKind,
    data_loss_error,
    deleted_topic,
    past_loss_error,
)
from pyspark_kafka._connector.planning.lag import OffsetsBehind, lag_metrics, most_behind, offsets_behind
from pyspark_kafka._connector.planning.ranges import Plan, find_lost_beginnings, find_lost_positions, plan_ranges
from pyspark_kafka._connector.planning.rate_limit import rate_limit
from pyspark_kafka._connector.planning.resolve import resolve_offsets, resolve_timestamps, timestamps_to_look_up
from pyspark_kafka._connector.planning.task_ranges import pack_ranges, split_ranges

__all__ = [
    "ContinuousPlan",
    "DataLoss",
    "DataLossKind",
    "EndedPlan",
    "OffsetsBehind",
    "Plan",
    "byte_limit",
    "check_available_now",
    "data_loss_error",
    "deleted_topic",
    "end_plan",
    "find_lost_beginnings",
    "find_lost_positions",
    "lag_metrics",
    "most_behind",
    "offsets_behind",
    "pack_ranges",
    "past_loss_error",
    "plan_continuous",
    "plan_ranges",
    "rate_limit",
    "resolve_offsets",
    "resolve_timestamps",
    "share_partitions",
    "split_ranges",
    "timestamps_to_look_up",
]
