# RUN: %python %s | FileCheck %s
# ruff: noqa: E501, T201

# Errors show the user's line.

from mlirfuse import builder as mf
from mlirfuse.compiler.context import make_context
from mlirfuse.errors import TraceError

matrix, row = mf.TensorSpec(("m", 8), "float16"), mf.TensorSpec(5, "float16")


def attempt(fn):
    try:
        mf.trace(fn, [matrix, row], context=make_context())
    except TraceError as error:
        print(f"{type(error).__name__}: {error}")


# CHECK:      ShapeError: {{.*}}errors.py:[[#@LINE + 5]]: multiply: shapes (m, 8) and (5,) do not broadcast
# CHECK-NEXT:     return x * y
# CHECK-NEXT:            ^^^^^
# CHECK-NEXT: hint: dimension -1: 8 and 5 must be equal, or one of them 1
def shapes(x, y):
    return x * y


attempt(shapes)


# CHECK:      ControlFlowError: {{.*}}errors.py:[[#@LINE + 5]]: a traced value has no data, and Python asked for its truth value
# CHECK-NEXT:     if mf.max(y) > 1:
# CHECK-NEXT:        ^^^^^^^^^^^^^
# CHECK-NEXT: hint: use mf.where
def branch(x, y):
    if mf.max(y) > 1:
        return x
    return -x


attempt(branch)


# CHECK:      NeedsStatic: {{.*}}errors.py:[[#@LINE + 3]]: max over dimension 0 of (m, 8) needs the dynamic extent 'm' to be static
# CHECK-NEXT:     return mf.max(x, axis=0)
def rows(x, y):
    return mf.max(x, axis=0)


attempt(rows)
