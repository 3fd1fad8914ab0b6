"""Phrases that compare an option with Spark's own connector.

The documentation page shows them from `Option.parity`; a test demands a comparison for every option. Properties that
Spark's connector passes to Java's clients are compared with Kafka 4.3.
"""

SAME = "same"
OURS = "not an option of Spark's connector"
# Refused by Spark's connector.
REFUSED_THERE = "refused, too"
# Passed by Spark's connector to Java's clients, which know the property.
PASSED_ON = "passed to Java's clients"
# Passed by Spark's connector to Java's clients, which do not know the property.
IGNORED = "ignored by Java's clients"
TIMES = "same; ISO 8601 and times relative to now are added"
STORE_TYPE = "same, except that Java takes JKS or PKCS12 for granted if no type is given"
NO_TRANSACTION = "passed to Java's clients, without effect: nothing starts a transaction"
