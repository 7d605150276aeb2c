"""What would stand in the layer's package `families`."""
