"""Key stores: PEM, PKCS#12 and JKS, from a file or from an option.

`certificate_store` detects the kind of a store and reports its problems by option; `pem`, `jks` and `pkcs12` read
bytes; `content` is the result.

Invariant: nothing is written and nothing is sent. Bytes of a store become a `StoreContent` or an error, in bounded
time.
"""
