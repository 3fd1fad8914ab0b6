"""Which release of Kafka a broker is, as far as its versions of requests tell. Pure. Layer: client."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

# The newest version of a request that came with a release: brokers do not name their release (KIP-35). Only requests
# that every listener for clients offers. Source: `ApiKeys` and the schemas of the releases.
_FIRST_WITH = (
    ("4.3", 35, 5),
    ("4.2", 2, 11),
    ("4.1", 0, 13),
    ("4.0", 2, 10),
    ("3.9", 1, 17),
    ("3.8", 0, 11),
    ("3.7", 1, 16),
    ("3.6", 24, 4),
    ("3.5", 1, 15),
    ("3.3", 29, 3),
    ("3.2", 11, 9),
    ("3.1", 1, 13),
    ("3.0", 2, 7),
    ("2.8", 0, 9),
    ("2.7", 1, 12),
    ("2.6", 48, 0),
    ("2.5", 29, 2),
    ("2.4", 0, 8),
    ("2.3", 1, 11),
    ("2.2", 2, 5),
    ("2.1", 1, 10),
)
_OLDER = "older than 2.1"


def guess_release(offered: Mapping[int, tuple[int, int]]) -> str:
    """Return the release that first had these versions of requests, such as `4.3`; a guess.

    Services that speak Kafka's protocol, and gateways, look like the release whose requests they offer.

    Args:
        offered: the lowest and highest version of each request, by API key.
    """
    for release, api_key, version in _FIRST_WITH:
        if api_key in offered and offered[api_key][1] >= version:
            return release
    return _OLDER
