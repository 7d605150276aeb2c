"""Views of arrays on the host, and the copies and loops that reshapes which are no views need."""
