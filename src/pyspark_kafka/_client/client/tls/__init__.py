"""TLS: certificates, and the handshake on a connected socket.

`contexts` keeps what the options ask for, `handshake` encrypts a socket, `errors` guesses why that failed.

Invariant: the certificate of a broker is always verified, and TLS is 1.2 or newer. No Kafka is spoken here.
"""
