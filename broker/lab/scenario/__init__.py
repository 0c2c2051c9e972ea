"""Scenario files: steps that ask the routes of the lab, in YAML."""
