"""All conversation with Kafka brokers: connections, metadata, offsets, fetches, produce requests, pools of clients.

What must not live here: Spark, options as strings, decoding of records.
Layer: client; above records/, below streaming/.
"""
