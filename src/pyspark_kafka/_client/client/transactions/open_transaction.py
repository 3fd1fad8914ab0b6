"""A transaction as those who write its records see it. Pure: no sockets, no clock."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from pyspark_kafka._client.client.wire.api_versions import MAX_PRODUCE_VERSION

# The newest version of Produce in which a partition has to join a transaction before it is written to.
_MAX_PRODUCE_VERSION_V1 = 11


class Generation(Enum):
    """The transaction protocol that a cluster supports.

    V1: partitions join by a request. V2: partitions join by being written to, and the end of a transaction returns the
    epoch of the next one.

    Source: KIP-98; KIP-890, part 2.
    """

    V1 = 1
    V2 = 2


@dataclass(frozen=True, slots=True)
class TransactionIdentity:
    """The identity under which records of a transaction are written; every record batch carries it."""

    producer_id: int
    producer_epoch: int
    generation: Generation


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """One open transaction.

    Attributes:
        name: the transactional id.
        identity: under which its records are written.
    """

    name: str
    identity: TransactionIdentity

    @property
    def max_produce_version(self) -> int:
        """The newest version of Produce to write with."""
        return MAX_PRODUCE_VERSION if self.identity.generation is Generation.V2 else _MAX_PRODUCE_VERSION_V1
