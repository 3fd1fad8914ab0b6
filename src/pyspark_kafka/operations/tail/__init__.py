"""Operations: the records of one topic, as people look at them.

`request` is what is asked for. `tailing` finds where to begin (`last` finds the last records), reads with `reading`,
and returns records in the order of `merging`. `matching` leaves out what is not asked for, `shown` makes of Arrow rows
what is shown.

Invariant: nothing is committed and no group is joined; what a record holds is never an error; memory is bounded,
however large or many the records. Layer: operations.
"""
