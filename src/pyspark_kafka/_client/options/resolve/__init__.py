"""All options of one query together: parsed values to frozen classes.

Entry points: `read.parse_read_options` and its siblings, `write.parse_write_options`. They have every option parsed
first; what follows are functions of the parsed values and a list of problems. Runs on the driver; pure except for the
clock.

A module a subject: `connection`, `security`, `tls`, logins in `login` and `tokens`; typed values in `formats` and
`registry`; the ends of a read in `range_edges`.

Invariant: all problems are found before any is reported, in one `OptionError`.
"""
