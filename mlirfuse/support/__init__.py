"""What every package may use and what knows no kernel: dtypes, strides,
diagnostics, dataclasses as data, helpers of the bindings.
"""
