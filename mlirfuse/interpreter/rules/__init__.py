"""The rules of all ops, one rule an op, grouped by dialect. Importing this package registers all rules."""

from importlib import import_module
from pkgutil import iter_modules

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
