"""The image that ottla's own is built from (docker/Dockerfile)."""

BASE = "docker.io/library/python:3.12-slim"
