"""The executor side of the sink: rows to record batches, sent to brokers or left for the driver.

Entry points: `data_writer.KafkaDataWriter`, `outbox.KafkaOutboxWriter`; both encode with `record_batch_encoder`.
Invariant: a row that cannot be written fails its task; none is skipped.
"""
