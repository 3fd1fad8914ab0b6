"""The executor side of the sink: rows to record batches, sent to brokers or left for the driver.

- `record_batch_encoder` encodes rows; `partitioner` chooses partitions, which `partition_lookup` lists, `typed_rows`
  encodes typed keys and values before, `identity_headers` and `header_columns` add headers of this package.
- `data_writer` sends with the task's producer (`task_producer`, at least once), `outbox` leaves batches for the driver
  (`exactlyOnceCommit=driver`), `task_transaction_writer` sends them in a transaction of the task
  (`exactlyOnceCommit=tasks`), `transaction_writer` in transactions of a lane, with positions. `task_options` are the
  options of one task. `traces/` has the spans of tasks, and the header that names them.

Entry points: `data_writer.KafkaDataWriter`, `outbox.KafkaOutboxWriter`,
`task_transaction_writer.KafkaTaskTransactionWriter`.
Invariant: a row that cannot be written fails its task; none is skipped.
"""
