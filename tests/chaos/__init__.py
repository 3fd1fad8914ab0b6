"""A cluster in motion: brokers that restart, die, freeze and move, bad wires, and a check of what queries make of it.

The check reads Kafka with another client and shares nothing with source or sink.
"""
