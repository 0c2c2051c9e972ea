"""Holds of single requests and replies, which are looked at and let in one by one, in any order."""
