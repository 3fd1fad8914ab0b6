"""One connection to one broker: name lookup, TCP, TLS, SASL, requests and responses in order.

| module | role |
| --- | --- |
| `handshake` | opens a connection, from the name to the last SASL token; uses `tcp`, `tls/` and `login/` |
| `connection` | requests and responses in order, on `frame_stream` (bytes of frames) and `buffers`; renews old logins |
| `client_id` | names the requests of a task |
| `idleness`, `login_session` | the time for which an idle connection, and a login, can be trusted |
| `polling` | waits for many connections at a time |
| `dials` | opens connections to several brokers side by side, in threads |
| `errors` | builds errors with a guess at the cause: TLS against plaintext, missing SASL, wrong credentials |
| `trace` | a line for each request and response |

Entry points: `handshake.open_connection`, `dials.Dials`. Invariant: a failed connection is closed and never used again;
a connection belongs to one thread at a time.
"""
