"""A soak: queries of all kinds side by side for hours, while memory, descriptors, threads and files are recorded.

`make soak MINUTES=120`; what it found last is in docs/internals/soak.md.
"""
