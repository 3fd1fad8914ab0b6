"""The newest version of each request that several rooms send, and why not a newer one. Layer: client."""

from __future__ import annotations

# Version 13 names topics by id only, which some brokers never return (docs/internals/fetch-rules.md, R35).
MAX_PRODUCE_VERSION = 12
# Version 6 is unstable as of Kafka 4.3, and adds nothing without a transactional id.
MAX_INIT_VERSION = 5
# The newest version of FindCoordinator with one key; later ones ask for many at once.
MAX_FIND_VERSION = 3
# Clients stop here; later versions of AddPartitionsToTxn are between brokers (KIP-890).
MAX_ADD_VERSION = 3
# Later versions of AddOffsetsToTxn are for transactions of the second generation, which do not need it (KIP-890).
MAX_ADD_OFFSETS_VERSION = 3
# The newest version of OffsetFetch with one group, and the first one that waits for open transactions (KIP-447).
OFFSET_FETCH_VERSION = 7
# Version 9 adds nothing for a group without members, and later ones name topics by id.
MAX_OFFSET_COMMIT_VERSION = 8
