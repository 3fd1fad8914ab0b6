"""One connection to one broker: name lookup, TCP, TLS, SASL, requests and responses in order.

Entry point: `connection.BrokerConnection`. Connections to several brokers side by side: `dials.Dials`.
Invariant: a connection that failed is closed and never used again. Layer: client.
"""
