"""The base class of passes, their registry, and pipelines of mlirfuse's and upstream's passes. No pass is here."""
