"""The versions of requests that a broker and this client share. Pure: no socket, no clock."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark_kafka._client.client.wire.messages import ApiVersionsRequest
from pyspark_kafka.errors import ProtocolError

# The newest version of each request that several rooms send, and why not a newer one.
# Version 13 names topics by id only, which some brokers never return (docs/internals/fetch-rules.md, R35).
MAX_PRODUCE_VERSION = 12
# Version 6 is unstable as of Kafka 4.3, and adds nothing without a transactional id.
MAX_INIT_VERSION = 5
# The newest version of FindCoordinator with one key; later ones take many keys.
MAX_FIND_VERSION = 3
# Clients stop here; later versions of AddPartitionsToTxn are between brokers (KIP-890).
MAX_ADD_VERSION = 3
# Later versions of AddOffsetsToTxn are for transactions of the second generation, which do not need it (KIP-890).
MAX_ADD_OFFSETS_VERSION = 3
# The newest version of OffsetFetch with one group, and the first one that waits for open transactions (KIP-447).
OFFSET_FETCH_VERSION = 7
# Version 9 adds nothing for a group without members, and later ones name topics by id.
MAX_OFFSET_COMMIT_VERSION = 8


class ApiVersions:
    """The requests and versions that one broker supports.

    Attributes:
        offered: the lowest and the highest version of each request, by API key.
        features: the level of each feature that the cluster has settled on, by name (KIP-584).

    Args:
        offered: as the attribute; None before the response to ApiVersions, when no other request can be sent.
        features: as the attribute.
    """

    __slots__ = ("features", "offered")

    def __init__(
        self, offered: Mapping[int, tuple[int, int]] | None = None, features: Mapping[str, int] | None = None
    ) -> None:
        question = {ApiVersionsRequest.API_KEY: (0, ApiVersionsRequest.max_version)}
        self.offered: dict[int, tuple[int, int]] = question if offered is None else dict(offered)
        self.features: dict[str, int] = dict(features or {})

    def shared(self, request_class: Any) -> tuple[int, int] | None:
        """Return the lowest and the highest version that both sides have; None if there is none."""
        broker = self.offered.get(request_class.API_KEY)
        if broker is None:
            return None
        ours = request_class.valid_versions
        lowest, highest = max(broker[0], ours[0]), min(broker[1], ours[1])
        return (lowest, highest) if lowest <= highest else None

    def newest(self, request_class: Any, address: str, *, max_version: int | None = None) -> int:
        """Return the version that a request of this class is sent in.

        Args:
            request_class: a class (or an instance) of `client.wire.messages`.
            address: of the broker, for the error.
            max_version: an upper bound of the caller.

        Raises:
            ProtocolError: broker and client share no version.
        """
        known = self.offered.get(request_class.API_KEY)
        ours = request_class.valid_versions
        if known is not None:
            lowest, highest = max(known[0], ours[0]), min(known[1], ours[1])
            if max_version is not None:
                highest = min(highest, max_version)
            if lowest <= highest:
                return int(highest)
        raise ProtocolError(
            f"{address} and this client share no version of {request_class.name}: the broker has "
            f"{f'{known[0]} to {known[1]}' if known else 'none'}, the client {ours[0]} to "
            f"{ours[1] if max_version is None else min(ours[1], max_version)}.",
            condition="UNSUPPORTED_VERSION",
            hint="The broker is too old, or a gateway leaves this request out.",
            parameters={"broker": address, "request": request_class.name},
        )
