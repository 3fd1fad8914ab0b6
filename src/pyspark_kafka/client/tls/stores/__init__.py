"""Key stores: PEM, PKCS#12 and JKS, from a file or from an option.

`reading` finds out which it is and names what is wrong with it by its option; `pem`, `jks` and `pkcs12` read bytes;
`content` is what comes out.

Invariant: nothing is written and nothing is sent. Bytes of a store become a `StoreContent` or an error, in bounded
time.
"""
