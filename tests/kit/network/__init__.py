"""A network between clients and brokers that a test can slow down, cut, forget and falsify.

`Proxies` runs any number of proxies on one thread, each before one broker. `Proxy.set_wire` sets how bytes pass, as a
`Wire`: rate, delay, pieces, cuts, flipped bits, connections that are forgotten. A change (`changes.py`) edits single
responses: lying fields, throttle times, lost or cut responses.

A broker that advertises its own address is reached through a proxy with `Proxies.before`, which replaces the address in
the responses.
"""
