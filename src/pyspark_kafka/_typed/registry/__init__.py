"""Schema registries: Confluent's API and compatible registries, Apicurio's own for its global ids, AWS Glue's.

- `connect`: the registry of some options, one for a process.
- `cached`: what is asked once, what waits, and what is remembered of schemas that are not there.
- `confluent`, `apicurio`, `glue`: the questions, in the words of each API.
- `inquiry`, `guard`: one question over HTTP, with all its attempts, within its time and its size; `clients` lends it
  the clients of confluent-kafka.
- `backoff`: when a registry that was away is asked again.
- `references`, `answers`: what comes back, checked. No sockets.
- `failures`: the errors.

Entry point: `registry.connect.open_registry`.
Invariant: an outage, a refused login and nonsense are a `RegistryError`, and only a registry's own word that there is
no such schema is an `UnknownSchemaError`; no connection is used on both sides of a fork.
Layer: registry, beside _client/client/; imports options, formats and errors only.
"""
