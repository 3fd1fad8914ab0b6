"""Operations: the positions of queries, the content of their checkpoints and of topics, without Spark.

- `settings`: the resolved options of any query. `text`: numbers and time spans for people.
- `checkpoints/`: the content of checkpoints, and changed copies of them.
- `lag/`: the lag and the headroom of positions.
- `tail/`: the records of a topic.
- `reports/`: metrics of a checkpoint as a page.

Invariant: only the targets that the caller names are changed; unknown values are reported next to the known ones.
"""
