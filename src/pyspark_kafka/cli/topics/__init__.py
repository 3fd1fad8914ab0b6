"""`pyspark-kafka topics` and `pyspark-kafka tail`.

`app` has the options of `topics`, `work` does what its commands say.
`tail` is the command of that name, `tail_text` how it shows a record.

Invariant: nothing is computed here; `pyspark_kafka.operations` does so. No command deletes.
"""
