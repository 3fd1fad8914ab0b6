"""What a topic's configuration says about deleting old records. Pure: no sockets, no clock. Layer: planning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

CONFIG_NAMES = ("cleanup.policy", "retention.ms", "retention.bytes", "remote.storage.enable")
"""The configuration values of a topic that `parse_policy` reads."""


@dataclass(frozen=True, slots=True)
class RetentionPolicy:
    """When brokers delete the oldest records of a topic.

    Attributes:
        deletes: whether they delete by age and size at all; a topic that is compacted only keeps the last value of
            each key forever.
        retention_ms: age in ms from which on records may be deleted; None: no limit.
        retention_bytes: size in bytes of a partition's log from which on its oldest records may be deleted; None: no
            limit.
        is_tiered: whether a part of the log may be in remote storage (KIP-405), which the size of a log on a broker's
            disk does not include.
    """

    deletes: bool = True
    retention_ms: int | None = None
    retention_bytes: int | None = None
    is_tiered: bool = False


def parse_policy(configs: Mapping[str, str | None]) -> RetentionPolicy:
    """Return the policy that configuration values of a topic, as brokers return them, stand for.

    Args:
        configs: value by name, see `CONFIG_NAMES`. A name that is missing, or has a value that is no number, counts as
            no limit: a broker that does not know it does not delete by it.

    Source: Kafka `LogConfig`; negative numbers are no limit.
    """
    policies = (configs.get("cleanup.policy") or "delete").split(",")
    return RetentionPolicy(
        deletes="delete" in {name.strip() for name in policies},
        retention_ms=_limit(configs.get("retention.ms")),
        retention_bytes=_limit(configs.get("retention.bytes")),
        is_tiered=configs.get("remote.storage.enable") == "true",
    )


def _limit(text: str | None) -> int | None:
    try:
        number = int(text or "")
    except ValueError:
        return None
    return None if number < 0 else number
