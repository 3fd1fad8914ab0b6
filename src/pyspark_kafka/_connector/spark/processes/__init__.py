"""The Python processes that Spark starts: which Python they run, how they log, how little time they spend on garbage.

Entry points: `prepare.prepare` and `python_choice` in a user's program before Spark starts; `process_log.log_as_spark`
and `gc_freeze.freeze_gc` first in whatever Spark calls. Invariant: nothing here knows sources or sinks.
"""
