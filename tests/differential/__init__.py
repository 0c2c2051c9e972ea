"""Stories that run against ottla and Apache Kafka; replies are compared field by field.

Modules of one subject share their brokers, so their names are in the order in which they run: what a later one leaves
would be seen by the lists of an earlier one.
"""
