"""All options of one query together: raw texts to frozen values.

Entry points: `read.parse_read_options` and its siblings, `write.parse_write_options`. Runs on the driver; pure
except for the clock.

Invariant: all problems are found before any is reported, in one `OptionError`. Layer: options.resolve, above
options.catalogue.
"""
