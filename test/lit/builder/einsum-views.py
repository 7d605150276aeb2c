# RUN: %python %s | FileCheck %s
# ruff: noqa: T201

# Einsums that only rearrange are views, without a kernel; a rearrangement in front of a product is in its maps.

import mlirfuse as mf

X = mf.TensorSpec((8, 16, 16), "float32")


def show(name, fn, *specs):
    compiled = mf.fuse(fn, target="sm_90a").lower(*specs).compile()
    print(f"{name}: {len(compiled.program.launches)} kernels, {len(compiled.binaries)} compiled")


# CHECK: permuted: 0 kernels, 0 compiled
show("permuted", lambda x: mf.einsum("ijk->kij", x), X)
# CHECK: diagonal: 0 kernels, 0 compiled
show("diagonal", lambda x: mf.einsum("ijj->ji", x), X)
# CHECK: identity: 0 kernels, 0 compiled
show("identity", lambda x: mf.einsum("...", x), X)
# CHECK: of a slice: 0 kernels, 0 compiled
show("of a slice", lambda x: mf.einsum("ijk->jik", x[::2, 3:]), X)
# CHECK: reshaped: 0 kernels, 0 compiled
show("reshaped", lambda x: mf.reshape(mf.einsum("ijk->ijk", x), (128, 16)), X)
# CHECK: product of permuted arrays: 1 kernels, 1 compiled
show("product of permuted arrays", lambda x, y: mf.einsum("jik,lkj->il", x, mf.einsum("abc->cba", y)), X, X)
# CHECK: product of a diagonal: 1 kernels, 1 compiled
show("product of a diagonal", lambda x, y: mf.einsum("ijj,jk->ik", x, y), X, mf.TensorSpec((16, 24), "float32"))
# CHECK: product of slices: 1 kernels, 1 compiled
show("product of slices", lambda x, y: mf.einsum("ijk,ikl->ijl", x[1:5], y[:4, :, ::2]), X, X)
# A sum has to be computed.
# CHECK: trace: 1 kernels, 1 compiled
show("trace", lambda x: mf.einsum("ijj->i", x), X)
