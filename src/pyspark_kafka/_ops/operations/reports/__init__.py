"""Metrics of a checkpoint as an HTML page, or of a running query in a notebook.

`generate` reads and writes; `history`, `progress` and `event_files` are the batches of a checkpoint, of progress
reports, of event logs. `timeline` and `render` decide the content, `plots` draws, `page` is the file. `live` redraws
one plot in a notebook.

Invariant: pure modules decide, one module does the I/O.
"""
