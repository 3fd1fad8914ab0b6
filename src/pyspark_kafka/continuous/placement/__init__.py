"""Where the tasks of a continuous query run.

`job` is the Spark job that holds them, `slots` how many can run at the same time, `sessions` the address at which they
reach the driver.

Invariant: what depends on the kind of a session, classic or Connect, is here. Layer: continuous, below `query`.
"""
