"""Continuous queries: their processes killed at every point of an epoch, and on the cluster in motion.

`striking` kills the processes of a query from inside, at a point that the test names; `program` is the query;
`world` runs both; `kills` has what is done; `run` prints the table.

On the cluster in motion `flows` runs the queries in the driver of `chaos`, with the function of `flowing`; `faults` has
what only they suffer, `visible` when readers saw their records, `planted` bugs.

`checker`, with `kit/log_checker.py`, compares source, output and checkpoint of both.
"""
