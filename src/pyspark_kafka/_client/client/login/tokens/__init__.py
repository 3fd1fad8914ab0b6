"""Tokens of logins: their sources, their claims, their reuse.

`sources` gets a `token` from where the login says, `endpoint` requests one from an OAuth server, `msk_iam` signs one
for Amazon MSK, `claims` reads its claims, `cache` keeps one for each login.

Invariant: one process requests one token of a login at a time, and keeps it in memory only. No text has a token or a
secret in it. Every response from outside is bounded in bytes and in time.
"""
