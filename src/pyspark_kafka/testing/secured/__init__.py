"""Listeners of an embedded broker that encrypt and authenticate, for `EmbeddedKafka(listeners=...)`.

Entry point: `broker_security.BrokerSecurity`, which turns the `listeners` into properties of the broker, with
`certificates`, `java_stores` and `tokens` made on the fly. Invariant: no key, password or token outlives the broker,
and none is the same twice.
"""

from __future__ import annotations
