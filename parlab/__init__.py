"""Tools of the course on model-internal parallelism."""

__version__ = "0.1.0"
