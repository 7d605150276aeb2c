"""Image arithmetic and changes of layout; none is a transpose alone, which would be a view and take no time."""
# ruff: noqa: D103  # the formulas say it

from __future__ import annotations

from typing import Any

from survey_programs.formulas import wide


def camera_to_network(xp: Any, x: Any, mean: Any, scale: Any) -> Any:
    """Bytes (images, height, width, 3) to normalised planes."""
    y = (wide(xp, x) + 128.0 - mean) * scale
    return xp.astype(xp.permute_dims(y, (0, 3, 1, 2)), xp.bfloat16)


def normalise_planes(xp: Any, x: Any, mean: Any, scale: Any) -> Any:
    return xp.astype((wide(xp, x) - mean[:, None]) * scale[:, None], xp.bfloat16)


def network_to_camera(xp: Any, y: Any) -> Any:
    h = xp.clip(wide(xp, y) * 127.5, -128.0, 127.0)
    return xp.astype(xp.round(xp.permute_dims(h, (0, 2, 3, 1))), xp.int8)


def grey(xp: Any, x: Any, w: Any) -> Any:
    """(pixels, 3) by three weights."""
    return xp.sum(wide(xp, x) * w, axis=-1)


def grey_planes(xp: Any, x: Any, w: Any) -> Any:
    return xp.astype(xp.sum(wide(xp, x) * w[:, None], axis=1), xp.bfloat16)


def colour_matrix(xp: Any, x: Any, m: Any) -> Any:
    """(images, 3, pixels) by a matrix of 3 x 3, as a sum."""
    return xp.astype(xp.sum(wide(xp, x)[:, None, :, :] * m[:, :, None], axis=2), xp.bfloat16)


def gamma(xp: Any, x: Any) -> Any:
    return xp.exp(xp.log(x) * 0.4545)


def contrast(xp: Any, x: Any, factor: Any) -> Any:
    """Around each image's mean: (images, 3, pixels)."""
    h = wide(xp, x)
    mean = xp.mean(h, axis=(1, 2), keepdims=True)
    return xp.astype(xp.clip((h - mean) * factor[:, None, None] + mean, -3.0, 3.0), xp.bfloat16)


def blend(xp: Any, below: Any, above: Any, alpha: Any) -> Any:
    """(images, 3, pixels), and alphas (images, 1, pixels)."""
    a = wide(xp, alpha)
    return xp.astype(wide(xp, above) * a + wide(xp, below) * (1.0 - a), xp.bfloat16)


def vignette(xp: Any, x: Any, vertical: Any, horizontal: Any) -> Any:
    return xp.astype(wide(xp, x) * vertical[:, None] * horizontal, xp.bfloat16)


def tone_map(xp: Any, x: Any) -> Any:
    """By the log-mean of the whole image's brightness."""
    key = xp.exp(xp.mean(xp.log(x + 1e-3), axis=(1, 2), keepdims=True))
    y = x * 0.18 / key
    return y / (1.0 + y)


def block_similarity(xp: Any, x: Any, y: Any) -> Any:
    """SSIM of blocks of 8 x 8: (images, height / 8, 8, width / 8, 8)."""
    a, b, axes = wide(xp, x), wide(xp, y), (2, 4)
    ma, mb = xp.mean(a, axis=axes), xp.mean(b, axis=axes)
    va, vb = xp.mean(a * a, axis=axes) - ma * ma, xp.mean(b * b, axis=axes) - mb * mb
    cov = xp.mean(a * b, axis=axes) - ma * mb
    return (2.0 * ma * mb + 1e-4) * (2.0 * cov + 9e-4) / ((ma * ma + mb * mb + 1e-4) * (va + vb + 9e-4))


def box_downsample(xp: Any, x: Any) -> Any:
    """(images, height / 4, 4, width / 4, 4, 3)."""
    return xp.mean(wide(xp, x), axis=(2, 4))


def patches(xp: Any, x: Any) -> Any:
    """(images, 3, rows, 16, columns, 16) to (images, rows * columns, 3 * 16 * 16)."""
    n, c, rows, p, columns, q = x.shape
    return xp.reshape(xp.permute_dims(x, (0, 2, 4, 1, 3, 5)) * 2, (n, rows * columns, c * p * q))


def unpatched(xp: Any, x: Any) -> Any:
    """(images, rows, columns, 2, 2, channels) to (images, channels, rows, 2, columns, 2)."""
    return xp.permute_dims(x, (0, 5, 1, 3, 2, 4)) * 0.5


def pixel_shuffle(xp: Any, x: Any) -> Any:
    """(images, channels, 2, 2, height, width) to (images, channels, height, 2, width, 2)."""
    return xp.permute_dims(x, (0, 1, 4, 2, 5, 3)) + 1


def channels_last(xp: Any, x: Any) -> Any:
    return xp.permute_dims(x, (0, 2, 3, 1)) + 1


def channels_first(xp: Any, x: Any) -> Any:
    return xp.permute_dims(x, (0, 3, 1, 2)) + 1


def split_heads(xp: Any, x: Any) -> Any:
    return xp.permute_dims(x, (0, 2, 1, 3)) + 1


def scaled_transpose(xp: Any, x: Any) -> Any:
    return x.mT + 1


def symmetric(xp: Any, x: Any) -> Any:
    return x + x.mT


def reversed_dimensions(xp: Any, x: Any) -> Any:
    return xp.permute_dims(x, (2, 1, 0)) * 2


def narrowed_transpose(xp: Any, x: Any) -> Any:
    """float32 to bfloat16."""
    return xp.astype(x.mT, xp.bfloat16)


def transposed_bias_relu(xp: Any, x: Any, b: Any) -> Any:
    return xp.maximum(x.mT + b, 0)


def add(xp: Any, x: Any, y: Any) -> Any:
    return x + y


def scale_and_shift(xp: Any, x: Any, row: Any, column: Any) -> Any:
    return x * row + column


def mixed_types(xp: Any, x: Any, y: Any, z: Any) -> Any:
    """bfloat16, float32 and int8 in, two types out."""
    h = wide(xp, x) * y + wide(xp, z)
    return h, xp.astype(h, xp.bfloat16)


def many_inputs(xp: Any, a: Any, b: Any, c: Any, d: Any, e: Any, f: Any) -> Any:
    return a * b + c * d, e * f - a
