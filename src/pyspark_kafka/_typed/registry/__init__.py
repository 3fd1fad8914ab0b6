"""Schema registries: Confluent's API and compatible registries, AWS Glue's.

- `connect`: the registry of some options, one for a process.
- `cached`: each schema looked up once, and the memory of missing schemas.
- `confluent`, `glue`: the requests, in the words of each API.
- `inquiry`, `guard`: one HTTP request with all its attempts, and what its status means, within its time and its size;
  `clients` lends it the clients of confluent-kafka.
- `backoff`: the pause before `inquiry` or `glue` tries a registry again.
- `references`, `answers`: responses, checked. No sockets.
- `failures`: the errors.

Entry point: `connect.open_registry`.
Invariant: an outage, a refused login or an invalid response is a `RegistryError`; only the response that a schema does
not exist is an `UnknownSchemaError`. A process and its fork never share a connection. Imports options, codecs and
errors only.
"""
