"""Code that all commands share.

`arguments` has the options for a connection, `query_options` and `connection_options` read them from files and
arguments, `outcome` has the exit statuses, `output` prints sentences, JSON and tables, `heartbeat` shows the progress
of long steps, `interrupts` handles Ctrl-C, `pipes` readers that leave.

Invariant: nothing here knows a command.
"""
