"""From a trace to PTX and launch metadata: the pipeline, its stages as objects, and compiling again after spills.
What a launch has to know is read out of the IR here, as plain data, so that compiling imports nothing of `runtime`.
"""
