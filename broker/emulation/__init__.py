"""Brokers of earlier releases (`ottla.emulate`): the versions of APIs that a release has, and what was different then.

Nothing of this is imported unless a release is emulated. A module for an API defines `adapted`, which makes a handler
of the usual one.
"""
