"""The driver side of the sink: write jobs, and what makes a micro-batch visible exactly once.

- `at_least_once`: jobs whose tasks have sent everything.
- `exactly_once`: jobs with `exactlyOnceCommit=driver`, whose batches `publisher` makes visible in one transaction each;
  `tasks/`: jobs with `exactlyOnceCommit=tasks`. For both, `checked_sink` checks the sink before any work,
  `commit_topic` creates the topic of commit markers, `marker_reader` reads the newest marker.
- `transactional`: the exactly-once write of a continuous query, with its `lane_record_file` in the checkpoint.
- `write_schemas`: the schemas of typed keys and values, the same in every micro-batch.

Invariant: a commit marker is in the same transaction as the records of its micro-batch, or as the decision on them.
"""
