"""Helpers that tests import; nothing here is a test.

| You need | It is in |
| --- | --- |
| the broker of the run, a client of it, a topic, a broker to stop | `fixtures/broker.py` |
| topics that are created, changed, deleted | `administration.py` |
| a broker with secured listeners and users | `fixtures/secured_broker.py` |
| brokers of each version where a user has the rights that the test sets | `fixtures/guarded.py` |
| a Kerberos realm and its broker | `fixtures/kerberos.py` |
| a Spark session, a Spark Connect server, modules for them | `fixtures/spark.py` |
| what tests of some versions of PySpark must fail, and why | `fixtures/spark_versions.py` |
| a real schema registry, Apicurio's | `fixtures/apicurio.py` |
| Kafka's own command line tools | `fixtures/kafka_tools.py` |
| HDFS | `fixtures/hdfs.py` |
| YARN, an environment in an archive | `fixtures/clusters.py` |
| a file of Maven Central, got once | `maven.py` |
| a schema registry for a test | `fixtures/registry.py` |
| a PostgreSQL server | `fixtures/postgres.py` |
| the driver's look-ups without a cluster, a stream with them | `fixtures/offsets.py` |
| the kind of a test, from its code | `kinds.py` |
| its marker; no process from a unit test, no long plain test; the times by kind | `fixtures/kinds.py` |
| both variants of the record codec | `fixtures/codec.py` |
| the compiler of Protobuf without a process | `fixtures/protoc.py` |
| reports about waits, early | `fixtures/waits.py` |
| the wheel of this checkout, in Python only | `fixtures/wheel.py` |
| no thread that dials a broker left by a test | `fixtures/threads.py` |
| a folder for temporary files of programs that are killed | `fixtures/temporary.py` |
| no socket that kafka-python left open | `fixtures/kafka_python.py` |
| living processes by their environment | `processes.py` |
| spans in memory | `spans.py` |
| spans of other processes | `span_files.py`, `span_collector.py` by OpenTelemetry's own protocol |
| an HTTP server for posts | `posts.py` |
| the record of a whole run of the tests | `fixtures/recorded.py` |
| nothing that an earlier test left open, no handler of SIGTERM, no process after the run | `fixtures/leftovers.py` |
| the requests and responses of a test, in order | `fixtures/wire.py` |
| a source of numbers for adapters of engines | `number_source.py` |
| connections, clients, reads of a range, a task or a query | `reading.py` |
| several real brokers | `brokers/two_brokers.py` |
| a real broker whose logins last for seconds | `brokers/sessions.py` |
| a real broker that knows users and rights | `brokers/guarded.py` |
| to set and to take away rights of a user of that broker | `brokers/acls.py` |
| the rights that each feature needs, as data | `rights.py` |
| each of these features done once | `rights_in_use.py` |
| single requests to a broker, fake or real | `brokers/requests.py` |
| a cluster that misbehaves between two bytes | `fakes/tcp_cluster.py` |
| how that cluster answers without a script; scripts for fetches | `fakes/handlers/` |
| to close, to be silent, or raw bytes instead of a response | `fakes/scripts.py` |
| a response in which one field lies | `fakes/lies.py` |
| responses about transactions for that cluster | `fakes/transactions.py` |
| a cluster in memory, for producers | `fakes/memory_cluster.py` |
| a cluster in memory, for fetches without sockets | `fakes/simulated_cluster.py` |
| the same, with one damaged bit of a response | `fakes/damaged_cluster.py` |
| a continuous query without Spark, threads or clock | `fakes/simulated_query.py` |
| its lanes; its source, sink and checkpoint | `fakes/simulated_lane.py`, `fakes/simulated_ends.py` |
| the same with transactions, without Kafka | `fakes/simulated_transactions.py` |
| the same with state, without Kafka | `fakes/simulated_state.py` |
| the same with timers, without Kafka | `fakes/simulated_timers.py` |
| a lane with an aggregation in windows; the same in plain Python | `windowed.py` |
| micro-batches whose tasks publish, without Spark and Kafka | `fakes/simulated_task_commits.py` |
| the log of a partition in both of them, record batches for it | `fakes/logs.py` |
| a schema registry with Confluent's API that misbehaves | `fakes/schema_registry.py` |
| an https server of tokens that misbehaves | `fakes/token_endpoint.py` |
| a TLS server with any certificate, or bytes instead of TLS | `fakes/tls_server.py` |
| a local S3 server that counts its calls, and fails some | `fakes/object_store.py` |
| a network that is slow, drips, cuts, forgets, flips bits, lies | `network/` |
| an address that swallows packets | `fakes/black_hole.py` |
| a clock that a test sets | `fakes/clock.py` |
| threads that the system does not start | `fakes/threads.py` |
| a value after its way to an executor | `pickled.py` |
| planted secrets, and where they are found | `canaries.py` |
| every kind of query with secrets in its options | `programs/secret_queries.py` |
| queries of guides that write tables, with a driver that is killed | `table_queries.py` |
| change events in Debezium's form | `change_events.py` |
| a program in a process of its own | `programs/run.py` |
| a module of an example in a query | `programs/by_value.py` |
| the command line in this process | `programs/cli.py` |
| a standalone cluster of Spark: a master, workers to start and to kill | `programs/cluster.py` |
| `spark-submit`, archives that it ships, a Python without the package | `programs/submitted.py` |
| a program for clusters, with each kind of query | `programs/on_cluster.py` |
| its plan and its result | `programs/cluster_plan.py` |
| Hadoop's servers: HDFS, YARN | `programs/hadoop.py` |
| a driver that is killed within a commit | `programs/dying_driver.py` |
| a query that waits where a test wants it to | `programs/held_query.py` |
| the steps of a query until its first batch | `programs/first_batch.py` |
| record batches built by hand, byte by byte | `record_batches.py` |
| random schemas of Avro, their values and evolutions | `avro_schemas.py` |
| what a value of Avro is in the schema of a reader, by the specification | `avro_resolution.py` |
| a message of Protobuf with a field of each kind | `protobuf_schema.py` |
| random messages of Protobuf, their schemas and evolutions | `protobuf_schemas.py` |
| real schemas of Protobuf from packages, messages of them and their rows | `real_protobuf.py` |
| what reads and writes values with the columns that Spark has | `spark_columns.py` |
| a message with fields of the types of Protobuf that the docs name | `documented_protobuf.py` |
| random columns that each format can hold | `portable_columns.py` |
| random documents of JSON for a type, and what they are read as | `json_documents.py` |
| the types that a page names, and a column as Spark returns it | `typed_page.py` |
| the differences to `from_json` that a page names | `parity_page.py` |
| values that other programs wrote, and schemas by id for them | `golden_formats.py` |
| Kafka's own client, to check against | `independent_client.py` |
| the text of an error, whose end is the address of its entry | `texts.py` |
| options as users write them, and the error of refused ones | `raw_options.py` |
| what a query has copied, compared with what there was to read | `log_checker.py` |
| a page, looked at in a browser | `browser.py` |
| a session that metrics and lineage listen to | `listened_session.py` |
| nodes of Spark's plans | `jvm_nodes.py` |
| a collector of lineage, and the schemas of its events | `lineage_collector.py`, `openlineage_schemas.py` |
| a checkpoint, made of the ends of its batches, and read back | `checkpoint_files.py` |
| what documents point to | `pointers.py` |
| the Python files of the repository, their texts and syntax trees | `source_tree.py` |
| how much work a call is | `costs.py` |
| the calls and requests of one turn of a continuous read and write | `cycle.py` |
| the calls of a micro-batch in Kafka's source and sink | `batch_costs.py` |
| a part of a page that a program writes, a table for it | `marked_page.py` |
| the programs and commands of a guide | `pages.py` |
| ways to log in, and what is done with them | `security_matrix.py` |
| these on a client of Spark Connect | `programs/matrix_client.py` |
| to wait for a condition, and for how long | `waiting.py` |
| a source and a sink that keep their contracts, and some with faults | `contracts.py` |
| a continuous source that keeps its contract, and some with faults | `continuous_contracts.py` |
| the outcomes of the cases of such a file | `outcomes.py` |
| a source and a sink for continuous queries | `continuous.py` |
| a function that keeps state in them | `continuous_state.py` |
"""
