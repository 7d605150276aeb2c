"""Detection and segmentation, images and rays: losses with gradients, boxes in pairs, joined frequencies."""
# the formulas say it

from __future__ import annotations

from typing import Any

from survey_programs.formulas import narrow, wide


def sigmoid_focal(xp: Any, logits: Any, label: Any, ids: Any, normaliser: Any) -> Any:
    """RetinaNet: loss an image, and the gradient of the logits, for targets given as class numbers."""
    x = wide(xp, logits)
    t = label[:, :, None] == ids
    p = xp.sigmoid(x)
    pt = xp.where(t, p, 1.0 - p)
    alpha = xp.where(t, 0.25, 0.75)
    ce = xp.maximum(x, 0.0) - xp.where(t, x, 0.0) + xp.log1p(xp.exp(-xp.abs(x)))
    loss = alpha * xp.square(1.0 - pt) * ce
    sgn = xp.where(t, -1.0, 1.0)
    keep = (label >= 0)[:, :, None]
    grad = xp.where(keep, alpha * (1.0 - pt) * sgn * ((1.0 - pt) + 2.0 * pt * ce), 0.0)
    return xp.sum(xp.where(keep, loss, 0.0), axis=(1, 2)) / normaliser, narrow(xp, grad / normaliser[:, None, None])


def nms_suppression(xp: Any, boxes: Any, scores: Any, classes: Any) -> Any:
    """Which boxes a better one of the same class overlaps by a fifth, and soft-NMS' decays."""
    x0, y0 = boxes[:, :, 0], boxes[:, :, 1]
    w, h = xp.abs(boxes[:, :, 2]), xp.abs(boxes[:, :, 3])
    x1, y1, area = x0 + w, y0 + h, w * h
    iw = xp.minimum(x1[:, :, None], x1[:, None]) - xp.maximum(x0[:, :, None], x0[:, None])
    ih = xp.minimum(y1[:, :, None], y1[:, None]) - xp.maximum(y0[:, :, None], y0[:, None])
    inter = xp.maximum(iw, 0.0) * xp.maximum(ih, 0.0)
    iou = inter / (area[:, :, None] + area[:, None] - inter + 1e-4)
    rival = (scores[:, None] > scores[:, :, None]) & (classes[:, None] == classes[:, :, None])
    iou = xp.where(rival, iou, 0.0)
    return xp.any(iou > 0.2, axis=2), xp.min(xp.exp(-2.0 * iou * iou), axis=2)


def yolo_decode(xp: Any, head: Any, anchors: Any, column: Any, row: Any) -> Any:
    """Three anchors, 80 classes: boxes' corners, and the best class's score; channels first in, boxes first out."""
    n, _, h, w = head.shape
    p = xp.reshape(wide(xp, head), (n, 3, 85, h, w))
    s = xp.sigmoid(p)
    cx = (s[:, :, 0] * 2.0 - 0.5 + wide(xp, column)) * 8.0
    cy = (s[:, :, 1] * 2.0 - 0.5 + wide(xp, row)[:, None]) * 8.0
    bw = xp.square(s[:, :, 2] * 2.0) * anchors[:, 0, None, None]
    bh = xp.square(s[:, :, 3] * 2.0) * anchors[:, 1, None, None]
    boxes = xp.stack([cx - bw / 2, cy - bh / 2, cx + bw / 2, cy + bh / 2], axis=-1)
    score = s[:, :, 4] * xp.max(s[:, :, 5:], axis=2)
    return xp.reshape(boxes, (n, 3 * h * w, 4)), xp.reshape(score, (n, 3 * h * w))


def dice_cross_entropy(xp: Any, logits: Any, label: Any, ids: Any, weight: Any) -> Any:
    """19 classes, channels first: Dice a class and weighted cross-entropy, pixels of class 0 ignored."""
    x = wide(xp, logits)
    d = x - xp.max(x, axis=1, keepdims=True)
    e = xp.exp(d)
    total = xp.sum(e, axis=1, keepdims=True)
    p = e / total
    hot = label[:, None] == ids[:, None, None]
    known = (label != 0)[:, None]
    inter = xp.sum(xp.where(hot & known, p, 0.0), axis=(2, 3))
    both = xp.sum(xp.where(known, p + wide(xp, hot), 0.0), axis=(2, 3))
    dice = 1.0 - (2.0 * inter + 1.0) / (both + 1.0)
    w = weight[:, None, None]
    logp = d - xp.log(total)
    picked = xp.sum(xp.where(hot & known, logp * w, 0.0))
    return xp.mean(dice), -picked / xp.sum(xp.where(hot & known, w, 0.0))


def nerf_encode_composite(xp: Any, points: Any, sigma: Any, rgb: Any, delta: Any, before: Any) -> Any:
    """Frequencies of points, and colours composited along 192 samples by a product with a triangle."""
    parts = [points]
    for k in range(6):
        parts += [xp.sin(points * 2.0**k), xp.cos(points * 2.0**k)]
    code = xp.concat(parts, axis=-1)
    t = xp.maximum(sigma, 0.0) * delta
    w = (1.0 - xp.exp(-t)) * xp.exp(-(t @ before))
    colour = xp.sum(w[..., None] * xp.sigmoid(rgb), axis=1)
    rest = 1.0 - xp.sum(w, axis=1, keepdims=True)
    return narrow(xp, code), colour + rest, w


def cutmix_batch(
    xp: Any, image: Any, mean: Any, rstd: Any, flips: Any, lam: Any, y0: Any, x0: Any, ys: Any, xs: Any
) -> Any:
    """Integer NHWC images to normalised NCHW, flipped by sample, and a rectangle from the reversed batch."""
    v = (wide(xp, image) - mean) * rstd
    v = xp.permute_dims(v, (0, 3, 1, 2))
    v = xp.where(flips[:, None, None, None], xp.flip(v, axis=3), v)
    inside_y = (ys >= y0[:, None]) & (ys < y0[:, None] + 96)
    inside_x = (xs >= x0[:, None]) & (xs < x0[:, None] + 96)
    box = (inside_y[:, :, None] & inside_x[:, None])[:, None]
    other = xp.flip(v, axis=0)
    mixed = xp.where(box, other, v) * lam[:, None, None, None] + (1.0 - lam)[:, None, None, None] * v
    return narrow(xp, mixed)
