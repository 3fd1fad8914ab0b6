"""The border to ptars (Rust): the part of a schema that it is given, and its results.

`recursive_messages` makes bytes of messages within themselves, `plain_message` leaves what ptars takes, and
`message_handler` reads and writes with it, and has the fields that a message becomes.

Invariant: ptars is given the messages of a column and nothing else of their files, and no name that it panics at.
"""
