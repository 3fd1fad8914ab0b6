"""TLS: certificates, and the handshake on a connected socket.

`contexts` builds the TLS context of the options and keeps it, `handshake` encrypts a socket, `errors` guesses why that
failed, with the help of `inspection` (the certificates that a server shows) and `certificates` (their content, read
with `der`). `stores/` reads key stores.

Invariant: the certificate of a broker is always verified, and TLS is 1.2 or newer. No Kafka is spoken here.
"""
