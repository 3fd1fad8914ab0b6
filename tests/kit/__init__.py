"""What tests import; nothing here is a test.

| You need | It is in |
| --- | --- |
| the broker of the run, a topic, a broker to stop | `fixtures/broker.py` |
| a Spark session, a Spark Connect server | `fixtures/spark.py` |
| the driver's look-ups without a cluster | `fixtures/offsets.py` |
| several real brokers, a broker behind a proxy | `brokers/` |
| a cluster that misbehaves between two bytes | `fakes/tcp_cluster.py` |
| a cluster in memory, for producers | `fakes/memory_cluster.py` |
| a program in a process of its own | `programs/` |
| record batches built by hand | `record_batches.py` |
| the requests and responses of a test, in order | `fixtures/wire.py` |
| both variants of the record codec | `fixtures/codec.py` |
| Kafka's own client, to check against | `independent_client.py` |
| to wait for a condition | `waiting.py` |
| what a page points to in the code | `pointers.py` |
"""
