"""Listeners of an embedded broker that encrypt and authenticate, for `EmbeddedKafka(listeners=...)`.

Entry point: `BrokerSecurity`, which turns the listeners (`listeners`) into properties of the broker, with certificates
(`certificates`) and tokens (`tokens`) made on the fly. Invariant: no key, password or token outlives the broker, and
none is the same twice.
"""

from __future__ import annotations
