"""Change events in Debezium's form, of a table with three products."""

from __future__ import annotations

import json
from typing import Any

from kit.independent_client import Record

_APPLE, _PEAR, _PLUM = (
    {"id": 1, "name": "apple", "cents": 50},
    {"id": 2, "name": "pear", "cents": 60},
    {"id": 3, "name": "plum", "cents": 70},
)
_DEARER = {**_PEAR, "cents": 65}


def change(op: str, before: dict[str, Any] | None, after: dict[str, Any] | None) -> Record:
    """Return an event as the connector for PostgreSQL writes it, with more fields than the guide reads."""
    key = {"id": (after or before or {})["id"]}
    source = {"connector": "postgresql", "db": "shop", "table": "products", "lsn": 24023128, "snapshot": "false"}
    # All in one millisecond: only offsets have the order.
    envelope = {"before": before, "after": after, "source": source, "op": op, "ts_ms": 1767225600000}
    return Record(json.dumps(key).encode(), json.dumps(envelope).encode())


FIRST_CHANGES = [change("r", None, _APPLE), change("c", None, _PEAR), change("c", None, _PLUM)]
FURTHER_CHANGES = [
    change("u", _PEAR, _DEARER),
    change("d", _APPLE, None),
    Record(b'{"id": 1}', None),
    change("u", _PLUM, {**_PLUM, "name": "prune"}),
    change("d", _PLUM, None),
    Record(b'{"id": 3}', None),
    change("c", None, _PLUM),
]
# Rows of the table by id, after the first changes and after all.
FIRST_PRODUCTS = [_APPLE, _PEAR, _PLUM]
PRODUCTS = [_DEARER, _PLUM]
