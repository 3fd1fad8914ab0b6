"""How long brokers keep what a query has not read: the rules of a topic, and the time that is left.

Invariant: pure; a figure is the earliest time at which brokers may delete a record, never a later one. Layer: planning.
"""

from pyspark_kafka.planning.retention.headroom import Headroom, HeadroomReason, headroom_ms
from pyspark_kafka.planning.retention.policy import CONFIG_NAMES, RetentionPolicy, parse_policy

__all__ = ["CONFIG_NAMES", "Headroom", "HeadroomReason", "RetentionPolicy", "headroom_ms", "parse_policy"]
