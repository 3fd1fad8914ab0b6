"""SASL: the login of a new connection.

`exchange` drives a mechanism over a connection, `mechanisms` builds the mechanism of a login: `plain`, `scram`, `oauth`
or `kerberos`, on the interface in `mechanism`. The login itself is an option: `_client/options/` has its values in
`values/security`, made by `parse/jaas` and `resolve/login`. `delegation_token` is a login for a limited time,
`credential_ref` a login that options only refer to. `tokens/` has the tokens of logins, `errors` guesses at causes.

Invariant: no socket; connections are passed in. Credentials are revealed here, as late as possible, and enter no error
and no log line.
"""
