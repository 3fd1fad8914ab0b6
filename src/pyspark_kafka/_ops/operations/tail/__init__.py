"""The records of one topic, for people.

`request` is the request of the user. `tail_topic` finds the starts (`last` finds the last records), reads with
`reader`, and returns records in the order of their times. `match` filters records, `shown` converts Arrow rows to their
shown form.

Invariant: nothing is committed and no group is joined; the content of a record is never an error; memory is bounded for
any size and number of records.
"""
