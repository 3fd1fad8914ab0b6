"""The spans of a continuous query: its plans, its commits, and the epochs of its lanes.

`query_spans` has the spans of the driver, `epoch_spans` the spans of a lane. Source and sink say whether a query has
spans, and what they are called: this room knows neither.

Invariant: a lane that reads nothing has no spans.
"""
