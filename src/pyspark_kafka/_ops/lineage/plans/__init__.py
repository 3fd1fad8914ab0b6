"""What queries read and write, out of their plans.

`continuous_queries` reads the plans of continuous queries, `spark_plans` the plans of classic Spark's JVM,
`connect_plans` the requests of a Spark Connect client. `written_topics` finds the topics that rows name by constants.

Invariant: a plan that another Spark has in another form is left out, and fails nothing.
"""
