"""Text to value, one option at a time.

`scalars` parses numbers, words, names and secrets, `times` times and durations, `offsets_json` the JSON of offsets and
timestamps, `jaas` JAAS configurations, `tls` TLS settings, `registry` the addresses and logins of a schema registry. A
parser raises `ValueError` with a sentence that starts with a verb and does not name the option, which its caller knows.

Invariant: a parser of a secret never repeats the text; no clock, no I/O.
"""
