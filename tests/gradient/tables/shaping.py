"""The same elements in another shape or order, repeated, or some of them left out."""

import numpy as np
import torch
from gradient.checking import Case


def depth_to_space(x, block, mode):
    """ONNX's DepthToSpace."""
    n, c, h, w = x.shape
    if mode == "CRD":
        return torch.nn.functional.pixel_shuffle(x, block)
    y = x.reshape(n, block, block, c // block**2, h, w).permute(0, 3, 4, 1, 5, 2)
    return y.reshape(n, c // block**2, h * block, w * block)


def space_to_depth(x, block):
    """ONNX's SpaceToDepth."""
    n, c, h, w = x.shape
    y = x.reshape(n, c, h // block, block, w // block, block).permute(0, 3, 5, 1, 2, 4)
    return y.reshape(n, c * block**2, h // block, w // block)


def reverse_first(x, lengths, time_axis):
    """ONNX's ReverseSequence of two leading axes."""
    x = x if time_axis == 0 else x.transpose(0, 1)
    columns = [torch.cat([x[:n, k].flip(0), x[n:, k]]) for k, n in enumerate(lengths.tolist())]
    y = torch.stack(columns, 1)
    return y if time_axis == 0 else y.transpose(0, 1)


TAKEN = torch.tensor([True, False, True])

CASES = [
    Case(
        "reshape",
        "(T[2,3,4] x) => (T[6,4] y) { s = Constant<value_ints=[6,4]>() y = Reshape(x, s) }",
        lambda x: x.reshape(6, 4),
        half=True,
    ),
    Case(
        "reshape_zero_and_minus_one",
        "(T[2,3,4] x) => (T[2,12] y) { s = Constant<value_ints=[0,-1]>() y = Reshape(x, s) }",
        lambda x: x.reshape(2, 12),
    ),
    Case(
        "reshape_at_run_time",
        "(T[2,3] x, int64[2] s) => (T[3,2] y) { y = Reshape(x, s) }",
        lambda x, s: x.reshape(3, 2),
        {"s": [3, -1]},
    ),
    Case(
        "reshape_allowzero",
        "(T[0,3] x) => (T[3,0] y) { s = Constant<value_ints=[3,0]>() y = Reshape<allowzero=1>(x, s) }",
        lambda x: x.reshape(3, 0),
    ),
    Case(
        "reshape_empty",
        "(T[0,3,2] x) => (T[0,6] y) { s = Constant<value_ints=[0,6]>() y = Reshape(x, s) }",
        lambda x: x.reshape(0, 6),
    ),
    Case(
        "reshape_scalar",
        "(T[1,1] x) => (T y) { s = Constant<value=int64[0]{}>() y = Reshape(x, s) }",
        lambda x: x.reshape(()),
    ),
    Case(
        "reshape_squared",
        "(T[2,3] x) => (T[6] y) { s = Constant<value_ints=[-1]>() z = Reshape(x, s) y = Mul(z, z) }",
        lambda x: x.reshape(-1) ** 2,
    ),
    Case("flatten", "(T[2,3,4] x) => (T[2,12] y) { y = Flatten(x) }", lambda x: x.flatten(1), half=True),
    Case("flatten_axis_0", "(T[2,3] x) => (T[1,6] y) { y = Flatten<axis=0>(x) }", lambda x: x.reshape(1, 6)),
    Case("flatten_negative", "(T[2,3,4] x) => (T[6,4] y) { y = Flatten<axis=-1>(x) }", lambda x: x.reshape(6, 4)),
    Case("flatten_empty", "(T[2,0,4] x) => (T[2,0] y) { y = Flatten(x) }", lambda x: x.flatten(1)),
    Case(
        "transpose_default",
        "(T[2,3,4] x) => (T[4,3,2] y) { y = Transpose(x) }",
        lambda x: x.permute(2, 1, 0),
        half=True,
    ),
    Case(
        "transpose_perm",
        "(T[2,3,4,1] x) => (T[3,4,1,2] y) { y = Transpose<perm=[1,2,3,0]>(x) }",
        lambda x: x.permute(1, 2, 3, 0),
    ),
    Case(
        "transpose_squared",
        "(T[2,3,4] x) => (T[4,2,3] y) { z = Transpose<perm=[2,0,1]>(x) y = Mul(z, z) }",
        lambda x: x.permute(2, 0, 1) ** 2,
    ),
    Case("transpose_empty", "(T[2,0] x) => (T[0,2] y) { y = Transpose(x) }", lambda x: x.T),
    Case("squeeze_all", "(T[1,3,1] x) => (T[3] y) { y = Squeeze(x) }", lambda x: x.squeeze(), half=True),
    Case(
        "squeeze_axes",
        "(T[1,3,1] x) => (T[1,3] y) { a = Constant<value_ints=[-1]>() y = Squeeze(x, a) }",
        lambda x: x.squeeze(-1),
    ),
    Case(
        "squeeze_to_scalar",
        "(T[1] x) => (T y) { a = Constant<value_ints=[0]>() y = Squeeze(x, a) }",
        lambda x: x.squeeze(0),
    ),
    Case(
        "squeeze_at_run_time",
        "(T[1,3,1] x, int64[1] a) => (T[3,1] y) { y = Squeeze(x, a) }",
        lambda x, a: x.squeeze(0),
        {"a": [0]},
    ),
    Case(
        "unsqueeze",
        "(T[2,3] x) => (T[1,2,3,1] y) { a = Constant<value_ints=[0,-1]>() y = Unsqueeze(x, a) }",
        lambda x: x[None, :, :, None],
        half=True,
    ),
    Case(
        "unsqueeze_scalar",
        "(T x) => (T[1] y) { a = Constant<value_ints=[0]>() y = Unsqueeze(x, a) }",
        lambda x: x[None],
    ),
    Case(
        "expand",
        "(T[3,1] x) => (T[2,3,4] y) { s = Constant<value_ints=[2,3,4]>() y = Expand(x, s) }",
        lambda x: x.expand(2, 3, 4),
        half=True,
    ),
    Case(
        "expand_ones_in_shape",
        "(T[3,4] x) => (T[2,3,4] y) { s = Constant<value_ints=[2,1,4]>() y = Expand(x, s) }",
        lambda x: x.expand(2, 3, 4),
    ),
    Case(
        "expand_lower_rank",
        "(T[2,3,1] x) => (T[2,3,4] y) { s = Constant<value_ints=[4]>() y = Expand(x, s) }",
        lambda x: x.expand(2, 3, 4),
    ),
    Case(
        "expand_scalar",
        "(T x) => (T[2,3] y) { s = Constant<value_ints=[2,3]>() y = Expand(x, s) }",
        lambda x: x.expand(2, 3),
    ),
    Case(
        "expand_at_run_time",
        "(T[1,3] x, int64[3] s) => (T[2,4,3] y) { y = Expand(x, s) }",
        lambda x, s: x.expand(2, 4, 3),
        {"s": [2, 4, 1]},
    ),
    Case(
        "expand_to_nothing",
        "(T[1,3] x) => (T[0,3] y) { s = Constant<value_ints=[0,3]>() y = Expand(x, s) }",
        lambda x: x.expand(0, 3),
    ),
    Case(
        "expand_squared",
        "(T[3,1] x) => (T[2,3,2] y) { s = Constant<value_ints=[2,3,2]>() z = Expand(x, s) y = Mul(z, z) }",
        lambda x: x.expand(2, 3, 2) ** 2,
    ),
    Case(
        "tile",
        "(T[2,1,3] x) => (T[4,5,3] y) { r = Constant<value_ints=[2,5,1]>() y = Tile(x, r) }",
        lambda x: x.tile(2, 5, 1),
        half=True,
    ),
    Case(
        "tile_at_run_time",
        "(T[2,3] x, int64[2] r) => (T[6,6] y) { y = Tile(x, r) }",
        lambda x, r: x.tile(3, 2),
        {"r": [3, 2]},
    ),
    Case(
        "tile_zero_times",
        "(T[2,3] x) => (T[0,6] y) { r = Constant<value_ints=[0,2]>() y = Tile(x, r) }",
        lambda x: x.tile(0, 2),
    ),
    Case(
        "tile_empty",
        "(T[0,3] x) => (T[0,6] y) { r = Constant<value_ints=[2,2]>() y = Tile(x, r) }",
        lambda x: x.tile(2, 2),
    ),
    Case("tile_scalar", "(T x) => (T y) { r = Constant<value=int64[0]{}>() y = Tile(x, r) }", lambda x: x * 1),
    Case(
        "tile_squared",
        "(T[2,3] x) => (T[4,3] y) { r = Constant<value_ints=[2,1]>() z = Tile(x, r) y = Mul(z, z) }",
        lambda x: x.tile(2, 1) ** 2,
    ),
    Case(
        "depthtospace_default",
        "(T[2,8,2,3] x) => (T[2,2,4,6] y) { y = DepthToSpace<blocksize=2>(x) }",
        lambda x: depth_to_space(x, 2, "DCR"),
        half=True,
    ),
    Case(
        "depthtospace_crd",
        '(T[2,8,2,3] x) => (T[2,2,4,6] y) { y = DepthToSpace<blocksize=2,mode="CRD">(x) }',
        lambda x: depth_to_space(x, 2, "CRD"),
        half=True,
    ),
    Case(
        "depthtospace_one_channel",
        '(T[1,9,1,2] x) => (T[1,1,3,6] y) { y = DepthToSpace<blocksize=3,mode="CRD">(x) }',
        lambda x: depth_to_space(x, 3, "CRD"),
    ),
    Case(
        "depthtospace_empty",
        '(T[0,4,2,3] x) => (T[0,1,4,6] y) { y = DepthToSpace<blocksize=2,mode="CRD">(x) }',
        lambda x: torch.zeros(0, 1, 4, 6, dtype=x.dtype) * x.sum(),
    ),
    Case(
        "spacetodepth",
        "(T[2,2,4,6] x) => (T[2,8,2,3] y) { y = SpaceToDepth<blocksize=2>(x) }",
        lambda x: space_to_depth(x, 2),
        half=True,
    ),
    Case(
        "reversesequence_default",
        "(T[4,3,2] x) => (T[4,3,2] y) { n = Constant<value_ints=[4,1,2]>() y = ReverseSequence(x, n) }",
        lambda x: reverse_first(x, torch.tensor([4, 1, 2]), 0),
        half=True,
    ),
    Case(
        "reversesequence_batch_first",
        "(T[3,4] x, int64[3] n) => (T[3,4] y) { y = ReverseSequence<batch_axis=0,time_axis=1>(x, n) }",
        lambda x, n: reverse_first(x, n, 1),
        {"n": [1, 4, 3]},
    ),
    Case(
        "compress_axis",
        "(T[2,3,2] x, bool[3] c) => (T[2,2,2] y) { y = Compress<axis=1>(x, c) }",
        lambda x, c: x[:, TAKEN],
        {"c": [True, False, True]},
        half=True,
    ),
    Case(
        "compress_negative_axis",
        "(T[2,3] x, bool[3] c) => (T[2,2] y) { y = Compress<axis=-1>(x, c) }",
        lambda x, c: x[:, TAKEN],
        {"c": [True, False, True]},
    ),
    Case(
        "compress_short_condition",
        "(T[5,2] x, bool[3] c) => (T[2,2] y) { y = Compress<axis=0>(x, c) }",
        lambda x, c: x[[0, 2]],
        {"c": [True, False, True]},
    ),
    Case(
        "compress_flattened",
        "(T[2,3] x, bool[5] c) => (T[3] y) { y = Compress(x, c) }",
        lambda x, c: x.reshape(-1)[[0, 2, 4]],
        {"c": [True, False, True, False, True]},
    ),
    Case(
        "compress_to_nothing",
        "(T[2,3] x, bool[3] c) => (T[2,0] y) { y = Compress<axis=1>(x, c) }",
        lambda x, c: x[:, :0],
        {"c": np.zeros(3, bool)},
    ),
    Case(
        "compress_squared",
        "(T[3,2] x, bool[3] c) => (T[2,2] y) { z = Compress<axis=0>(x, c) y = Mul(z, z) }",
        lambda x, c: x[TAKEN] ** 2,
        {"c": [True, False, True]},
    ),
]
