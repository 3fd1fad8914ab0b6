"""Operations: the records of one topic, as people look at them.

`request` is what is asked for. `tail_topic` finds where to begin (`last` finds the last records), reads with `reader`,
and returns records in the order of their times. `match` leaves out other records, `shown` makes what is shown of Arrow
rows.

Invariant: nothing is committed and no group is joined; what a record holds is never an error; memory is bounded,
however large or many the records.
"""
