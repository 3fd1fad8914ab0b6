"""The Python processes that Spark starts: their Python, their log lines, their time for garbage.

Entry points: `prepare.prepare` and `python_choice` in a user's program before Spark starts; `process_log.log_as_spark`
and `gc_freeze.freeze_gc` first in whatever Spark calls. `required_version` checks PySpark, `running_module` names what
a process was started for, `stop_signal` stops a stream before its process ends.

Invariant: nothing here knows sources or sinks.
"""
