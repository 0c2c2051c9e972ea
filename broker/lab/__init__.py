"""The lab, which shows and controls the simulation: the HTTP port, access checks, metrics,
views of share groups and transactions.
"""
