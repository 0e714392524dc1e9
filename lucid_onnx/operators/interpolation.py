"""Weights of cubic interpolation and their derivatives: Keys' kernel with a = -0.75.

Mirrors that part of `lucid_onnx.reference.interpolation`; which taps a point reads is the subject of `cells`.
"""

from __future__ import annotations

from lucid_onnx.operators.building import Builder, Value
from lucid_onnx.reference.schema import KEYS_A


def cubic_weights(op: Builder, t: Value) -> tuple[Value, ...]:
    """Weights of the taps at -1, 0, 1 and 2 for a point `t` beyond tap 0."""
    near, far = op.Sub(1.0, t), op.Sub(2.0, t)
    return _keys_far(op, op.Add(t, 1.0)), _keys_near(op, t), _keys_near(op, near), _keys_far(op, far)


def cubic_slopes(op: Builder, t: Value) -> tuple[Value, ...]:
    """Derivatives of `cubic_weights`: the taps ahead come nearer as `t` grows."""
    return (
        _keys_far_slope(op, op.Add(t, 1.0)),
        _keys_near_slope(op, t),
        op.Neg(_keys_near_slope(op, op.Sub(1.0, t))),
        op.Neg(_keys_far_slope(op, op.Sub(2.0, t))),
    )


def _keys_near(op: Builder, s: Value) -> Value:
    """Keys' kernel at a distance of 0 to 1."""
    return op.Add(op.Mul(op.Mul(op.Sub(op.Mul(s, KEYS_A + 2), KEYS_A + 3), s), s), 1.0)


def _keys_far(op: Builder, s: Value) -> Value:
    """Keys' kernel at a distance of 1 to 2."""
    inner = op.Add(op.Mul(op.Sub(op.Mul(s, KEYS_A), 5 * KEYS_A), s), 8 * KEYS_A)
    return op.Sub(op.Mul(inner, s), 4 * KEYS_A)


def _keys_near_slope(op: Builder, s: Value) -> Value:
    return op.Mul(op.Sub(op.Mul(s, 3 * (KEYS_A + 2)), 2 * (KEYS_A + 3)), s)


def _keys_far_slope(op: Builder, s: Value) -> Value:
    return op.Add(op.Mul(op.Sub(op.Mul(s, 3 * KEYS_A), 10 * KEYS_A), s), 8 * KEYS_A)
