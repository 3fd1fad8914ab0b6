"""Kills of a continuous query, one after another, at every point of an epoch, and a check of what came of them.

`striking` kills the processes of a query from inside, at a point that the test names; `program` is the query;
`world` runs both; `checker`, with `kit/log_checker.py`, compares source, output and checkpoint; `kills` has what is
done; `run` prints the table.
"""
