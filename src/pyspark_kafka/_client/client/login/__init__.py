"""SASL: how a new connection says who it is.

`exchange` drives a mechanism over a connection; `mechanisms` makes one of a login.

Invariant: no socket; what a connection is, is passed in. Credentials are revealed here, as late as possible, and enter
no error and no log line.
"""
