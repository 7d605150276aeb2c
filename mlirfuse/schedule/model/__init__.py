"""What a schedule takes of the machine before there is code: registers, shared memory, resident blocks."""
