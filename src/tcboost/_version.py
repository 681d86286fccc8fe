"""The version, as installed."""

from importlib.metadata import version

__version__: str = version("tcboost")
