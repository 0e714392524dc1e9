"""Parts cut out, put together, and margins."""

import torch
from gradient.checking import Case
from torch.nn.functional import pad


def sliced(inputs, output, starts, ends, axes="", steps="", more=""):
    """Text of a Slice by constants."""
    given = {"s": starts, "e": ends, "a": axes, "p": steps}
    constants = " ".join(f"{name} = Constant<value_ints=[{text}]>()" for name, text in given.items() if text)
    arguments = ["x", *(name if text else "" for name, text in given.items())]
    while not arguments[-1]:
        arguments.pop()
    return f"({inputs}) => ({output}) {{ {constants} {more or 'y'} = Slice({', '.join(arguments)})"


def window(before, after):
    """A twin of Pad in mode wrap, along the last axis."""
    return lambda x: torch.cat([x[..., x.shape[-1] - before :], x, x[..., :after]], -1)


SLICES = [
    Case("slice_one_axis", sliced("T[5,3] x", "T[2,3] y", "1", "3") + "}", lambda x: x[1:3], half=True),
    Case("slice_two_axes", sliced("T[5,3,4] x", "T[2,3,2] y", "1,-3", "3,-1", "0,2") + "}", lambda x: x[1:3, :, 1:3]),
    Case("slice_clipped", sliced("T[5,3] x", "T[5,2] y", "-99,1", "99,99", "0,1") + "}", lambda x: x[:, 1:]),
    Case("slice_negative_axis", sliced("T[5,3] x", "T[5,2] y", "0", "-1", "-1") + "}", lambda x: x[:, :-1]),
    Case("slice_to_nothing", sliced("T[5,3] x", "T[0,3] y", "3", "2") + "}", lambda x: x[3:2]),
    Case("slice_past_the_end", sliced("T[5,3] x", "T[0,3] y", "7", "9") + "}", lambda x: x[7:9]),
    Case("slice_empty", sliced("T[0,3] x", "T[0,2] y", "0,1", "1,3") + "}", lambda x: x[:, 1:]),
    Case("slice_step", sliced("T[7,3] x", "T[3,3] y", "1", "99", "0", "2") + "}", lambda x: x[1::2], half=True),
    Case("slice_steps_of_one", sliced("T[7,3] x", "T[6,2] y", "1,0", "99,2", "0,1", "1,1") + "}", lambda x: x[1:, :2]),
    Case("slice_steps", sliced("T[7,5] x", "T[3,3] y", "0,0", "7,5", "0,1", "3,2") + "}", lambda x: x[::3, ::2]),
    Case("slice_backwards", sliced("T[4,3] x", "T[4,3] y", "-1", "-99", "0", "-1") + "}", lambda x: x.flip(0)),
    Case("slice_backwards_step", sliced("T[2,6] x", "T[2,2] y", "9", "0", "-1", "-3") + "}", lambda x: x[:, [5, 2]]),
    Case("slice_step_to_nothing", sliced("T[4,3] x", "T[0,3] y", "1", "3", "0", "-1") + "}", lambda x: x[:0]),
    Case("slice_step_empty", sliced("T[0,3] x", "T[0,2] y", "0", "3", "1", "2") + "}", lambda x: x[:, ::2]),
    Case("slice_step_along_empty", sliced("T[0,3] x", "T[0,3] y", "0", "3", "0", "2") + "}", lambda x: x[::2]),
    Case(
        "slice_squared", sliced("T[5,3] x", "T[2,3] y", "1", "3", more="z") + " y = Mul(z, z) }", lambda x: x[1:3] ** 2
    ),
    Case(
        "slice_step_squared",
        sliced("T[5,3] x", "T[3,3] y", "0", "9", "0", "2", "z") + " y = Mul(z, z) }",
        lambda x: x[::2] ** 2,
    ),
    Case("slice_opset_16", sliced("T[5,3] x", "T[2,3] y", "1", "3") + "}", lambda x: x[1:3], opset=16),
    Case("slice_step_opset_16", sliced("T[7,3] x", "T[3,3] y", "1", "99", "0", "2") + "}", lambda x: x[1::2], opset=16),
    Case(
        "slice_at_run_time",
        "(T[5,3,4] x, int64[2] s, int64[2] e, int64[2] a) => (T[5,2,2] y) { y = Slice(x, s, e, a) }",
        lambda x, s, e, a: x[:, -2:, 1:3],
        {"s": [1, -2], "e": [3, 99], "a": [-1, 1]},
    ),
    Case(
        "slice_at_run_time_without_axes",
        "(T[5,3] x, int64[1] s, int64[1] e) => (T[2,3] y) { y = Slice(x, s, e) }",
        lambda x, s, e: x[-2:],
        {"s": [-2], "e": [2**63 - 1]},
    ),
    Case(
        "slice_at_run_time_clipped",
        "(T[5,3] x, int64[1] s, int64[1] e) => (T[0,3] y) { y = Slice(x, s, e) }",
        lambda x, s, e: x[:0],
        {"s": [9], "e": [2**63 - 1]},
    ),
    Case(
        "slice_int32_at_run_time",
        "(T[5,3] x, int32[1] s, int32[1] e, int32[1] a) => (T[5,1] y) { y = Slice(x, s, e, a) }",
        lambda x, s, e, a: x[:, 1:2],
        {"s": [1], "e": [2], "a": [1]},
    ),
    Case(
        "slice_step_at_run_time",
        "(T[7,3] x, int64[2] s, int64[2] e, int64[2] p) => (T[3,3] y) "
        "{ a = Constant<value_ints=[0,1]>() y = Slice(x, s, e, a, p) }",
        lambda x, s, e, p: x[[6, 4, 2]],
        {"s": [-1, 0], "e": [1, 3], "p": [-2, 1]},
    ),
    Case(
        "slice_step_at_run_time_without_axes",
        '(T[7,3] x, int64[1] s, int64[1] e, int64[1] p) => (T[4,3] y) { y = Slice(x, s, e, "", p) }',
        lambda x, s, e, p: x[::2],
        {"s": [0], "e": [7], "p": [2]},
    ),
]

PARTS = [
    Case(
        "concat",
        "(T[2,3] x, T[2,1] y) => (T[2,4] z) { z = Concat<axis=1>(x, y) }",
        lambda x, y: torch.cat([x, y], 1),
        half=True,
    ),
    Case(
        "concat_negative_axis",
        "(T[2,3] x, T[2,1] y, T[2,2] z) => (T[2,6] w) { w = Concat<axis=-1>(x, y, z) }",
        lambda x, y, z: torch.cat([x, y, z], 1),
    ),
    Case("concat_one", "(T[2,3] x) => (T[2,3] z) { z = Concat<axis=0>(x) }", lambda x: x * 1),
    Case("concat_itself", "(T[2,3] x) => (T[4,3] z) { z = Concat<axis=0>(x, x) }", lambda x: torch.cat([x, x])),
    Case(
        "concat_empty",
        "(T[0,3] x, T[2,3] y) => (T[2,3] z) { z = Concat<axis=0>(x, y) }",
        lambda x, y: torch.cat([x, y]),
    ),
    Case(
        "concat_along_others_empty",
        "(T[0,3] x, T[0,2] y) => (T[0,5] z) { z = Concat<axis=1>(x, y) }",
        lambda x, y: torch.cat([x, y], 1),
    ),
    Case(
        "concat_some_wanted",
        "(T[2,3] x, T[1,3] y) => (T[3,3] z) { z = Concat<axis=0>(x, y) }",
        lambda x, y: torch.cat([x, y]),
        wrt=("y",),
    ),
    Case(
        "concat_squared",
        "(T[2,3] x, T[1,3] y) => (T[3,3] z) { w = Concat<axis=0>(x, y) z = Mul(w, w) }",
        lambda x, y: torch.cat([x, y]) ** 2,
    ),
    Case(
        "concat_opset_16",
        "(T[2,3] x, T[2,1] y) => (T[2,4] z) { z = Concat<axis=1>(x, y) }",
        lambda x, y: torch.cat([x, y], 1),
        opset=16,
    ),
    Case(
        "split_equal",
        "(T[4,3] x) => (T[2,3] y, T[2,3] z) { y, z = Split<num_outputs=2>(x) }",
        lambda x: x.split(2),
        half=True,
    ),
    Case(
        "split_equal_opset_16", "(T[4,3] x) => (T[2,3] y, T[2,3] z) { y, z = Split(x) }", lambda x: x.split(2), opset=16
    ),
    Case(
        "split_uneven",
        "(T[2,5] x) => (T[2,3] y, T[2,2] z) { y, z = Split<axis=-1,num_outputs=2>(x) }",
        lambda x: x.split(3, 1),
    ),
    Case(
        "split_sizes",
        "(T[2,5] x) => (T[2,1] y, T[2,4] z) { s = Constant<value_ints=[1,4]>() y, z = Split<axis=1>(x, s) }",
        lambda x: x.split([1, 4], 1),
    ),
    Case(
        "split_sizes_at_run_time",
        "(T[5,2] x, int64[3] s) => (T[2,2] y, T[0,2] z, T[3,2] w) { y, z, w = Split(x, s) }",
        lambda x, s: x.split([2, 0, 3]),
        {"s": [2, 0, 3]},
    ),
    Case("split_one", "(T[3,2] x) => (T[3,2] y) { s = Constant<value_ints=[3]>() y = Split(x, s) }", lambda x: x * 1),
    Case("split_one_part_used", "(T[4,3] x) => (T[2,3] z) { y, z = Split<num_outputs=2>(x) }", lambda x: x[2:]),
    Case(
        "split_mixed",
        "(T[3,2] x) => (T[1,2] w) { a, b, c = Split<num_outputs=3>(x) d = Mul(a, c) w = Mul(d, a) }",
        lambda x: x[:1] ** 2 * x[2:],
    ),
    Case("split_empty", "(T[4,0] x) => (T[2,0] y, T[2,0] z) { y, z = Split<num_outputs=2>(x) }", lambda x: x.split(2)),
]


def padded(inputs, output, pads, more="", mode="constant", axes="", result="y"):
    """Text of a Pad by constants; `more` is its other inputs."""
    constants = f"p = Constant<value_ints=[{pads}]>()" + (f" a = Constant<value_ints=[{axes}]>()" if axes else "")
    return f'({inputs}) => ({output}) {{ {constants} {result} = Pad<mode="{mode}">(x, p{more})'


PADS = [
    Case(
        "pad_default",
        "(T[2,3] x) => (T[5,4] y) { p = Constant<value_ints=[1,0,2,1]>() y = Pad(x, p) }",
        lambda x: pad(x, (0, 1, 1, 2)),
        half=True,
    ),
    Case(
        "pad_value",
        padded("T[2,3] x, T v", "T[2,6] y", "0,1,0,2", ", v") + "}",
        lambda x, v: torch.cat([v.expand(2, 1), x, v.expand(2, 2)], 1),
    ),
    Case(
        "pad_value_of_one_element",
        padded("T[2,3] x, T[1] v", "T[2,6] y", "0,1,0,2", ", v") + "}",
        lambda x, v: torch.cat([v.expand(2, 1), x, v.expand(2, 2)], 1),
        opset=16,
    ),
    Case(
        "pad_only_value_wanted",
        padded("T[2,3] x, T v", "T[2,6] y", "0,1,0,2", ", v") + "}",
        lambda x, v: torch.cat([v.expand(2, 1), x, v.expand(2, 2)], 1),
        wrt=("v",),
    ),
    Case(
        "pad_axes",
        padded("T[2,3,4] x", "T[5,3,5] y", "1,3,0,0", ', "", a', axes="-1,0") + "}",
        lambda x: pad(x, (1, 0, 0, 0, 3, 0)),
    ),
    Case(
        "pad_axes_and_value",
        padded("T[2,3] x, T v", "T[2,5] y", "1,1", ", v, a", axes="1") + "}",
        lambda x, v: torch.cat([v.expand(2, 1), x, v.expand(2, 1)], 1),
    ),
    Case("pad_negative", padded("T[4,5] x", "T[3,4] y", "-1,-2,0,1") + "}", lambda x: pad(x, (-2, 1, -1, 0))),
    Case(
        "pad_negative_value",
        padded("T[4,5] x, T v", "T[3,5] y", "-1,-1,0,1", ", v") + "}",
        lambda x, v: torch.cat([x[1:, 1:], v.expand(3, 1)], 1),
    ),
    Case("pad_nothing", padded("T[2,3] x", "T[2,3] y", "0,0,0,0") + "}", lambda x: x * 1),
    Case(
        "pad_empty", padded("T[0,3] x, T v", "T[2,3] y", "1,0,1,0", ", v") + "}", lambda x, v: x.sum() + v.expand(2, 3)
    ),
    Case("pad_beside_empty", padded("T[0,3] x", "T[0,5] y", "0,1,0,1") + "}", lambda x: pad(x, (1, 1))),
    Case(
        "pad_at_run_time",
        "(T[2,3] x, int64[4] p, T v) => (T[3,4] y) { y = Pad(x, p, v) }",
        lambda x, p, v: torch.cat([v.expand(1, 4), torch.cat([x, v.expand(2, 1)], 1)]),
        {"p": [1, 0, 0, 1]},
    ),
    Case(
        "pad_axes_at_run_time",
        '(T[2,3] x, int64[2] p, int64[1] a) => (T[2,4] y) { y = Pad(x, p, "", a) }',
        lambda x, p, a: pad(x, (1, 0)),
        {"p": [1, 0], "a": [-1]},
    ),
    Case(
        "pad_squared",
        padded("T[2,3] x, T v", "T[4,4] y", "1,0,1,1", ", v", result="z") + " y = Mul(z, z) }",
        lambda x, v: torch.cat([v.expand(1, 4), torch.cat([x, v.expand(2, 1)], 1), v.expand(1, 4)]) ** 2,
    ),
    Case("pad_opset_16", padded("T[2,3] x", "T[5,4] y", "1,0,2,1") + "}", lambda x: pad(x, (0, 1, 1, 2)), opset=16),
    Case(
        "pad_edge",
        padded("T[1,2,3] x", "T[1,2,8] y", "0,0,3,0,0,2", mode="edge") + "}",
        lambda x: pad(x, (3, 2), "replicate"),
        half=True,
    ),
    Case(
        "pad_edge_two_axes",
        padded("T[1,1,2,3] x", "T[1,1,4,5] y", "0,0,1,2,0,0,1,0", mode="edge") + "}",
        lambda x: pad(x, (2, 0, 1, 1), "replicate"),
    ),
    Case("pad_edge_one", padded("T[2,1] x", "T[2,4] y", "0,1,0,2", mode="edge") + "}", lambda x: x.expand(2, 4)),
    Case(
        "pad_edge_beside_empty",
        padded("T[0,2] x", "T[0,5] y", "0,1,0,2", mode="edge") + "}",
        lambda x: x[:, [0, 0, 1, 1, 1]],
    ),
    Case(
        "pad_edge_squared",
        padded("T[2,3] x", "T[2,6] y", "0,1,0,2", mode="edge", result="z") + " y = Mul(z, z) }",
        lambda x: x[:, [0, 0, 1, 2, 2, 2]] ** 2,
    ),
    Case(
        "pad_edge_negative",
        padded("T[2,4] x", "T[2,5] y", "0,-1,0,2", mode="edge") + "}",
        lambda x: x[:, [1, 2, 3, 3, 3]],
    ),
    Case(
        "pad_edge_opset_16",
        padded("T[1,2,3] x", "T[1,2,8] y", "0,0,3,0,0,2", mode="edge") + "}",
        lambda x: pad(x, (3, 2), "replicate"),
        opset=16,
    ),
    Case(
        "pad_reflect",
        padded("T[1,2,4] x", "T[1,2,8] y", "0,0,3,0,0,1", mode="reflect") + "}",
        lambda x: pad(x, (3, 1), "reflect"),
        half=True,
    ),
    Case(
        "pad_reflect_two_axes",
        padded("T[1,1,3,4] x", "T[1,1,6,7] y", "2,1,1,2", ', "", a', "reflect", "2,3") + "}",
        lambda x: pad(x, (1, 2, 2, 1), "reflect"),
    ),
    Case(
        "pad_reflect_axes_in_any_order",
        padded("T[1,1,3,4] x", "T[1,1,6,7] y", "1,2,2,1", ', "", a', "reflect", "-1,-2") + "}",
        lambda x: pad(x, (1, 2, 2, 1), "reflect"),
    ),
    Case(
        "pad_reflect_at_run_time",
        '(T[1,3,4] x, int64[6] p) => (T[1,3,7] y) { y = Pad<mode="reflect">(x, p) }',
        lambda x, p: pad(x, (2, 1), "reflect"),
        {"p": [0, 0, 2, 0, 0, 1]},
    ),
    Case("pad_wrap", padded("T[2,4] x", "T[2,7] y", "0,2,0,1", mode="wrap") + "}", window(2, 1), half=True),
    Case(
        "pad_wrap_two_axes",
        padded("T[3,4] x", "T[4,5] y", "1,0,0,1", mode="wrap") + "}",
        lambda x: pad(x[None, None], (0, 1, 1, 0), "circular")[0, 0],
    ),
    Case(
        "centercroppad_both",
        "(T[5,2] x) => (T[2,5] y) { s = Constant<value_ints=[2,5]>() y = CenterCropPad(x, s) }",
        lambda x: pad(x[1:3], (1, 2)),
    ),
    Case(
        "centercroppad_axes",
        "(T[2,3,6] x) => (T[2,3,3] y) { s = Constant<value_ints=[3]>() y = CenterCropPad<axes=[-1]>(x, s) }",
        lambda x: x[..., 1:4],
    ),
    Case(
        "centercroppad_pad",
        "(T[2,3] x, int64[1] s) => (T[2,6] y) { y = CenterCropPad<axes=[1]>(x, s) }",
        lambda x, s: pad(x, (1, 2)),
        {"s": [6]},
    ),
]

CASES = [*SLICES, *PARTS, *PADS]
