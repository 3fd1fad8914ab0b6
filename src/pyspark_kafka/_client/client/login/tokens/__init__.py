"""Tokens of logins: where they come from, what they say, and for how long one is used.

`sources` gets a token as the login says, `endpoint` asks an OAuth server, `msk_iam` signs one for Amazon MSK, `claims`
reads what a token says, `cache` keeps one for each login.

Invariant: one process asks for one token of a login at a time, and keeps it in memory only. No text has a token or a
secret in it. Every answer from outside is bounded in bytes and in time.
"""
