"""Convolutions and their gradients over one, two or three spatial dimensions, as products of gathered views.

Each is one sum of products over loops (n, p..., g, k, r..., c): image, output pixel, group, filter, tap, channel of the
group. The input is a `fuse.gathered_view` of windows, with zeros where a window reaches into the padding.
"""

from __future__ import annotations

from typing import Any

from mlirfuse.builder.array_types import ArrayT
from mlirfuse.builder.emission.emit import transpose
from mlirfuse.builder.extents import Dim, Shape, needs_static, show
from mlirfuse.builder.functions.axes import integer
from mlirfuse.builder.functions.casting import cast, tensor_argument
from mlirfuse.builder.functions.convolutions.data_gradients import dgrad
from mlirfuse.builder.functions.convolutions.narrow_channels import forward, wgrad
from mlirfuse.builder.functions.convolutions.window_products import Problem
from mlirfuse.builder.functions.convolutions.windows import Padding, Window, per_dimension, windows
from mlirfuse.builder.functions.manipulation import reshape_to
from mlirfuse.builder.functions.products.sums_of_products import ProductTypes, product_types
from mlirfuse.builder.source import at_user_line
from mlirfuse.builder.state import LEAK_HINT, TensorBase
from mlirfuse.errors import ArgumentError, DTypeError, ShapeError, TraceError

Ints = int | tuple[int, ...] | list[int]


def conv2d(
    x: ArrayT,
    w: ArrayT,
    /,
    *,
    stride: Ints = 1,
    padding: Padding = 0,
    dilation: Ints = 1,
    groups: int = 1,
    layout: str = "NHWC",
    dtype: object = None,
    precision: str | None = None,
) -> ArrayT:
    """The cross-correlation of images x (N, H, W, C) with filters w (K, R, S, C / groups): (N, P, Q, K).

    P = (H + padding - ((R - 1) * dilation + 1)) // stride + 1, and Q alike. `padding` is an int, an int a spatial
    dimension, a (before, after) pair a dimension, `"same"` (P = ceil(H / stride)) or `"valid"`. In layout `"NCHW"`, x
    is (N, C, H, W), w (K, C / groups, R, S) and the result (N, K, P, Q). What has its channels last in memory is a
    view; other arguments are transposed, in a kernel that also runs what is pending on them, which `explain` says.
    `dtype` and `precision` are those of `matmul`. All extents must be static.

    Raises:
        ArgumentError: a stride or dilation below 1, negative padding, an unknown layout, or groups below 1.
        ShapeError: ranks, channels or groups that do not fit, or a filter larger than the padded input.
        DTypeError: bools, or dtypes that do not mix.
        NeedsStatic: an extent is dynamic.
    """
    return _conv("conv2d", 2, x, w, stride, padding, dilation, groups, layout, dtype, precision)


def conv1d(
    x: ArrayT,
    w: ArrayT,
    /,
    *,
    stride: Ints = 1,
    padding: Padding = 0,
    dilation: Ints = 1,
    groups: int = 1,
    layout: str = "NHWC",
    dtype: object = None,
    precision: str | None = None,
) -> ArrayT:
    """`conv2d` over one spatial dimension: x (N, L, C), w (K, R, C / groups), result (N, P, K).

    A pair of ints is the padding before and after: `padding=((R - 1) * dilation, 0)` is causal.
    """
    return _conv("conv1d", 1, x, w, stride, padding, dilation, groups, layout, dtype, precision)


def conv3d(
    x: ArrayT,
    w: ArrayT,
    /,
    *,
    stride: Ints = 1,
    padding: Padding = 0,
    dilation: Ints = 1,
    groups: int = 1,
    layout: str = "NHWC",
    dtype: object = None,
    precision: str | None = None,
) -> ArrayT:
    """`conv2d` over three spatial dimensions: x (N, D, H, W, C), w (K, T, R, S, C / groups)."""
    return _conv("conv3d", 3, x, w, stride, padding, dilation, groups, layout, dtype, precision)


def conv2d_wgrad(
    x: ArrayT,
    dy: ArrayT,
    /,
    *,
    kernel_size: Ints,
    stride: Ints = 1,
    padding: Padding = 0,
    dilation: Ints = 1,
    groups: int = 1,
    layout: str = "NHWC",
    dtype: object = None,
    precision: str | None = None,
) -> ArrayT:
    """The gradient (K, R, S, C / groups) of `conv2d`'s filters, for images x (N, H, W, C) and dy (N, P, Q, K).

    `kernel_size` is (R, S), or an int for both; the other arguments are those of the forward convolution.

    Raises:
        ShapeError: also where dy's extents are not those of the convolution's result.
    """
    given = (kernel_size, stride, padding, dilation, groups, layout, dtype, precision)
    return _wgrad("conv2d_wgrad", 2, x, dy, *given)


def conv1d_wgrad(
    x: ArrayT,
    dy: ArrayT,
    /,
    *,
    kernel_size: Ints,
    stride: Ints = 1,
    padding: Padding = 0,
    dilation: Ints = 1,
    groups: int = 1,
    layout: str = "NHWC",
    dtype: object = None,
    precision: str | None = None,
) -> ArrayT:
    """`conv2d_wgrad` over one spatial dimension."""
    given = (kernel_size, stride, padding, dilation, groups, layout, dtype, precision)
    return _wgrad("conv1d_wgrad", 1, x, dy, *given)


def conv3d_wgrad(
    x: ArrayT,
    dy: ArrayT,
    /,
    *,
    kernel_size: Ints,
    stride: Ints = 1,
    padding: Padding = 0,
    dilation: Ints = 1,
    groups: int = 1,
    layout: str = "NHWC",
    dtype: object = None,
    precision: str | None = None,
) -> ArrayT:
    """`conv2d_wgrad` over three spatial dimensions."""
    given = (kernel_size, stride, padding, dilation, groups, layout, dtype, precision)
    return _wgrad("conv3d_wgrad", 3, x, dy, *given)


def conv2d_dgrad(
    dy: ArrayT,
    w: ArrayT,
    /,
    *,
    input_size: Ints,
    stride: Ints = 1,
    padding: Padding = 0,
    dilation: Ints = 1,
    groups: int = 1,
    layout: str = "NHWC",
    dtype: object = None,
    precision: str | None = None,
) -> ArrayT:
    """The gradient (N, H, W, C) of `conv2d`'s images, for dy (N, P, Q, K) and filters w (K, R, S, C / groups).

    `input_size` is (H, W), or an int for both; the other arguments are those of the forward convolution.

    Raises:
        ShapeError: also where dy's extents are not those of the convolution's result.
    """
    return _dgrad("conv2d_dgrad", 2, dy, w, input_size, stride, padding, dilation, groups, layout, dtype, precision)


def conv1d_dgrad(
    dy: ArrayT,
    w: ArrayT,
    /,
    *,
    input_size: Ints,
    stride: Ints = 1,
    padding: Padding = 0,
    dilation: Ints = 1,
    groups: int = 1,
    layout: str = "NHWC",
    dtype: object = None,
    precision: str | None = None,
) -> ArrayT:
    """`conv2d_dgrad` over one spatial dimension."""
    return _dgrad("conv1d_dgrad", 1, dy, w, input_size, stride, padding, dilation, groups, layout, dtype, precision)


def conv3d_dgrad(
    dy: ArrayT,
    w: ArrayT,
    /,
    *,
    input_size: Ints,
    stride: Ints = 1,
    padding: Padding = 0,
    dilation: Ints = 1,
    groups: int = 1,
    layout: str = "NHWC",
    dtype: object = None,
    precision: str | None = None,
) -> ArrayT:
    """`conv2d_dgrad` over three spatial dimensions."""
    return _dgrad("conv3d_dgrad", 3, dy, w, input_size, stride, padding, dilation, groups, layout, dtype, precision)


def _conv(
    function: str,
    rank: int,
    x: Any,
    w: Any,
    stride: object,
    padding: object,
    dilation: object,
    groups: object,
    layout: str,
    dtype: object,
    precision: str | None,
) -> Any:
    last = _channels_last(function, layout)
    images, filters = (_operand(function, name, v, rank, last) for name, v in (("x", x), ("w", w)))
    found = windows(function, _ints(images)[1:-1], _ints(filters)[1:-1], stride, padding, dilation)
    count = _groups(function, groups, images.shape[-1], filters.shape[0])
    if filters.shape[-1] * count != images.shape[-1]:
        raise at_user_line(
            ShapeError(
                f"{function}: w {_given(filters.shape, last)} has {filters.shape[-1]} channels, and x "
                f"{_given(images.shape, last)} has {images.shape[-1]} in {count} group(s)",
                hint=f"w needs {_ints(images)[-1] // count} channels, {'last' if last else 'second'}",
            )
        )
    types = _types(function, images, filters, dtype, precision)
    operands = _cast(images, filters, types)
    problem = _problem(images, filters.shape[0], found, count)
    result = cast(forward(problem, *operands, types), types.result)
    return _result(reshape_to(result, (problem.images, *problem.outputs, problem.filters)), last)


def _wgrad(
    function: str,
    rank: int,
    x: Any,
    dy: Any,
    kernel_size: object,
    stride: object,
    padding: object,
    dilation: object,
    groups: object,
    layout: str,
    dtype: object,
    precision: str | None,
) -> Any:
    last = _channels_last(function, layout)
    images, grads = (_operand(function, name, v, rank, last) for name, v in (("x", x), ("dy", dy)))
    taps = per_dimension(function, "kernel_size", kernel_size, rank, 1)
    found = windows(function, _ints(images)[1:-1], taps, stride, padding, dilation)
    count = _groups(function, groups, images.shape[-1], grads.shape[-1])
    problem = _problem(images, grads.shape[-1], found, count)
    _check_gradient(function, grads, problem, last)
    types = _types(function, grads, images, dtype, precision)
    left, right = _cast(grads, images, types)
    result = cast(wgrad(problem, right, left, types), types.result)
    return _result(reshape_to(result, (problem.filters, *taps, problem.channels // count)), last)


def _dgrad(
    function: str,
    rank: int,
    dy: Any,
    w: Any,
    input_size: object,
    stride: object,
    padding: object,
    dilation: object,
    groups: object,
    layout: str,
    dtype: object,
    precision: str | None,
) -> Any:
    last = _channels_last(function, layout)
    grads, filters = (_operand(function, name, v, rank, last) for name, v in (("dy", dy), ("w", w)))
    sizes = per_dimension(function, "input_size", input_size, rank, 1)
    found = windows(function, sizes, _ints(filters)[1:-1], stride, padding, dilation)
    count = _groups(function, groups, None, filters.shape[0])
    channels = _ints(filters)[-1] * count
    problem = Problem(_ints(grads)[0], channels, _ints(filters)[0], tuple(found), count)
    _check_gradient(function, grads, problem, last)
    types = _types(function, grads, filters, dtype, precision)
    left, right = _cast(grads, filters, types)
    return _result(dgrad(problem, left, right, types), last)


def _channels_last(function: str, layout: object) -> bool:
    if layout not in ("NHWC", "NCHW"):
        raise at_user_line(ArgumentError(f"{function}: layout {layout!r}", hint='give "NHWC" or "NCHW"'))
    return layout == "NHWC"


def _operand(function: str, name: str, value: object, rank: int, last: bool) -> TensorBase:
    """An operand with its channels last; raises `ShapeError` for another rank, and `NeedsStatic`."""
    tensor = tensor_argument(value, function)
    if tensor.ndim != rank + 2:
        raise at_user_line(ShapeError(f"{function}: {name} of shape {show(tensor.shape)} needs {rank + 2} dimensions"))
    for extent in tensor.shape:
        if isinstance(extent, Dim):
            needs_static(extent, f"{function} with {name} of shape {show(tensor.shape)}")
    if 0 in tensor.shape:
        raise at_user_line(ShapeError(f"{function}: {name} of shape {show(tensor.shape)} has no elements"))
    return tensor if last else transpose(tensor, (0, *range(2, rank + 2), 1))


def _result(tensor: TensorBase, last: bool) -> TensorBase:
    rank = tensor.ndim
    return tensor if last else transpose(tensor, (0, rank - 1, *range(1, rank - 1)))


def _ints(tensor: TensorBase) -> list[int]:
    return [extent for extent in tensor.shape if isinstance(extent, int)]


def _groups(function: str, groups: object, channels: object, filters: object) -> int:
    count = integer(groups, f"{function}: groups")
    if count < 1:
        raise at_user_line(ArgumentError(f"{function}: groups {count} must be at least 1"))
    for name, extent in (("channels", channels), ("filters", filters)):
        if isinstance(extent, int) and extent % count:
            raise at_user_line(ShapeError(f"{function}: {count} groups do not divide {extent} {name}"))
    return count


def _problem(images: TensorBase, filters: Any, found: list[Window], groups: int) -> Problem:
    return Problem(_ints(images)[0], _ints(images)[-1], filters, tuple(found), groups)


def _check_gradient(function: str, grads: TensorBase, problem: Problem, last: bool) -> None:
    expected = (problem.images, *problem.outputs, problem.filters)
    if tuple(grads.shape) == expected:
        return
    names = ("L",) if len(problem.outputs) == 1 else ("D", "H", "W")[-len(problem.outputs) :]
    outputs = ("P",) if len(names) == 1 else ("O", "P", "Q")[-len(names) :]
    raise at_user_line(
        ShapeError(
            f"{function}: dy has shape {_given(grads.shape, last)}, and the convolution's result has "
            f"{_given(expected, last)}: {', '.join(outputs)} = {', '.join(map(str, problem.outputs))}",
            hint=f"{outputs[0]} = ({names[0]} + padding - ((taps - 1) * dilation + 1)) // stride + 1",
        )
    )


def _given(shape: Shape, last: bool) -> str:
    """A shape with channels last, as the caller's layout has it."""
    return show(shape if last else (shape[0], shape[-1], *shape[1:-1]))


def _cast(left: TensorBase, right: TensorBase, types: ProductTypes) -> tuple[TensorBase, TensorBase]:
    return cast(left, types.of(left.dtype)), cast(right, types.of(right.dtype))


def _types(function: str, left: TensorBase, right: TensorBase, dtype: object, precision: str | None) -> ProductTypes:
    if left.state is not right.state:
        raise at_user_line(TraceError(f"{function} mixes tensors of different traces", hint=LEAK_HINT))
    if "bool" in (left.dtype.kind, right.dtype.kind):
        raise at_user_line(DTypeError(f"{function} does not take bool", hint="use .astype(...)"))
    return product_types([left.dtype, right.dtype], dtype, precision, function)
