"""Which operations of a function share a kernel. Passes that change one kernel do not belong here."""
