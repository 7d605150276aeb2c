"""Where buffers come from, which ops touch which memory, and what is known of strides."""
