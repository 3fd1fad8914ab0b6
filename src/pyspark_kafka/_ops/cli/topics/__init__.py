"""`pyspark-kafka topics`: list, create and describe topics. `app` has the arguments, `work` does it.

Invariant: only `create` changes the cluster, and only by the topic that it is given.
"""
