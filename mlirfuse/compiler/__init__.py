"""From a trace to PTX and launch metadata: the pipeline, its stages as objects, and compiling again after spills.
Launch metadata is read from the IR here, as plain data, so that compiling imports nothing of `runtime`.
"""
