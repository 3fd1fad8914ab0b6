"""The placement of a continuous query's tasks.

`job` is the Spark job of the tasks, `slots` the number that can run at the same time, `sessions` the address of the
driver.

Invariant: everything that depends on the kind of a session, classic or Connect, is here.
"""
