"""Operations: where queries stand, what their checkpoints say, and what is in a cluster, without Spark.

- `settings`: the options of whichever query, resolved. `text`: numbers and time spans for people.
- `checkpoints/`: what a checkpoint says, and how another is made of it.
- `lag/`: how far positions are behind the ends of the logs, and how long records stay.
- `topics`: topics of a cluster. `tail/`: the records of a topic.
- `reports/`: figures of a checkpoint as a page.

Invariant: nothing is changed but what the caller names; what could not be found out is said beside what could. Knows
no Spark. Layer: above source and sink.
"""
