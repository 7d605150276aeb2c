"""Registers every distribution rule, when this module is imported: every module of the package is imported."""

from importlib import import_module
from pkgutil import walk_packages

from mlirfuse import distribution

for _module in walk_packages(distribution.__path__, f"{distribution.__name__}."):
    import_module(_module.name)
