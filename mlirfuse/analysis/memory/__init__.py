"""The origin of buffers, the memory that ops access, workspaces, and strides of views."""
