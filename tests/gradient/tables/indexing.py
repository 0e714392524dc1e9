"""Elements and slices read, or written, at given places."""

import numpy as np
import torch
from gradient.checking import Case

GATHERS = [
    Case(
        "gather",
        "(T[4,3] x, int64[2] i) => (T[2,3] y) { y = Gather(x, i) }",
        lambda x, i: x[i],
        {"i": [2, 0]},
        half=True,
    ),
    Case(
        "gather_repeated",
        "(T[4,3] x, int64[5] i) => (T[5,3] y) { y = Gather(x, i) }",
        lambda x, i: x[i],
        {"i": [1, 3, 1, -1, 1]},
    ),
    Case(
        "gather_many_repeated",
        "(T[3,2] x, int64[50] i) => (T[50,2] y) { y = Gather(x, i) }",
        lambda x, i: x[i],
        {"i": np.arange(50) % 3},
    ),
    Case(
        "gather_middle_axis",
        "(T[2,4,3] x, int64[2,2] i) => (T[2,2,2,3] y) { y = Gather<axis=1>(x, i) }",
        lambda x, i: x[:, i],
        {"i": [[0, 3], [3, -2]]},
    ),
    Case(
        "gather_middle_axis_many",
        "(T[2,2,3] x, int64[2,3] i) => (T[2,2,3,3] y) { y = Gather<axis=1>(x, i) }",
        lambda x, i: x[:, i],
        {"i": [[0, 1, 1], [1, -2, 0]]},
    ),
    Case(
        "gather_last_axis",
        "(T[2,4] x, int64[3] i) => (T[2,3] y) { y = Gather<axis=-1>(x, i) }",
        lambda x, i: x[:, i],
        {"i": [3, 3, 0]},
    ),
    Case(
        "gather_vector",
        "(T[4] x, int64[2,3] i) => (T[2,3] y) { y = Gather(x, i) }",
        lambda x, i: x[i],
        {"i": [[0, 1, 2], [2, 2, -1]]},
    ),
    Case(
        "gather_scalar_at_run_time",
        "(T[2,4,3] x, int64 i) => (T[2,3] y) { y = Gather<axis=1>(x, i) }",
        lambda x, i: x[:, -2],
        {"i": -2},
    ),
    Case("gather_int32", "(T[4,3] x, int32[2] i) => (T[2,3] y) { y = Gather(x, i) }", lambda x, i: x[i], {"i": [2, 2]}),
    Case("gather_nothing", "(T[4,3] x, int64[0] i) => (T[0,3] y) { y = Gather(x, i) }", lambda x, i: x[i], {"i": []}),
    Case(
        "gather_nothing_wide",
        "(T[4,0] x, int64[2] i) => (T[2,0] y) { y = Gather(x, i) }",
        lambda x, i: x[i],
        {"i": [1, 1]},
    ),
    Case(
        "gather_many_of_nothing_wide",
        "(T[1,0] x, int64[2] i) => (T[2,0] y) { y = Gather(x, i) }",
        lambda x, i: x[i],
        {"i": [0, 0]},
    ),
    Case(
        "gather_last_of_nothing",
        "(T[0,4] x, int64[2] i) => (T[0,2] y) { y = Gather<axis=1>(x, i) }",
        lambda x, i: x[:, i],
        {"i": [3, 3]},
    ),
    Case(
        "gather_squared",
        "(T[3,2] x, int64[4] i) => (T[4,2] y) { z = Gather(x, i) y = Mul(z, z) }",
        lambda x, i: x[i] ** 2,
        {"i": [1, 1, 0, 2]},
    ),
    Case(
        "gather_constant_scalar",
        "(T[2,4,3] x) => (T[2,3] y) { i = Constant<value_int=2>() y = Gather<axis=1>(x, i) }",
        lambda x: x[:, 2],
        half=True,
    ),
    Case(
        "gather_constant_last",
        "(T[2,4] x) => (T[2] y) { i = Constant<value_int=-1>() y = Gather<axis=1>(x, i) }",
        lambda x: x[:, -1],
    ),
    Case(
        "gather_constant_of_vector",
        "(T[4] x) => (T y) { i = Constant<value_int=1>() y = Gather(x, i) }",
        lambda x: x[1],
    ),
    Case(
        "gather_constant_unique",
        "(T[2,4] x) => (T[2,3] y) { i = Constant<value_ints=[3,0,-2]>() y = Gather<axis=1>(x, i) }",
        lambda x: x[:, [3, 0, 2]],
    ),
    Case(
        "gather_constant_repeated",
        "(T[4,2] x) => (T[3,2] y) { i = Constant<value_ints=[3,1,-1]>() y = Gather(x, i) }",
        lambda x: x[[3, 1, 3]],
    ),
    Case(
        "gather_constant_nothing",
        "(T[4,2] x) => (T[0,2] y) { i = Constant<value=int64[0]{}>() y = Gather(x, i) }",
        lambda x: x[:0],
    ),
    Case(
        "gather_constant_opset_16",
        "(T[2,4] x) => (T[2,2] y) { i = Constant<value_ints=[3,1]>() y = Gather<axis=1>(x, i) }",
        lambda x: x[:, [3, 1]],
        opset=16,
    ),
    Case(
        "gatherelements",
        "(T[3,2] x, int64[2,2] i) => (T[2,2] y) { y = GatherElements(x, i) }",
        lambda x, i: x.gather(0, i),
        {"i": [[0, 2], [0, 1]]},
        half=True,
    ),
    Case(
        "gatherelements_negative",
        "(T[2,3] x, int64[2,4] i) => (T[2,4] y) { y = GatherElements<axis=-1>(x, i) }",
        lambda x, i: x.gather(1, i % 3),
        {"i": [[0, -1, 2, 2], [1, -3, 0, 0]]},
    ),
    Case(
        "gatherelements_nothing",
        "(T[3,2] x, int64[0,2] i) => (T[0,2] y) { y = GatherElements(x, i) }",
        lambda x, i: x.gather(0, i),
        {"i": []},
    ),
    Case(
        "gatherelements_squared",
        "(T[3,2] x, int64[3,2] i) => (T[3,2] y) { z = GatherElements(x, i) y = Mul(z, z) }",
        lambda x, i: x.gather(0, i) ** 2,
        {"i": [[0, 2], [0, 1], [0, 1]]},
    ),
    Case(
        "gathernd_elements",
        "(T[2,3] x, int64[4,2] i) => (T[4] y) { y = GatherND(x, i) }",
        lambda x, i: x[i[:, 0], i[:, 1]],
        {"i": [[0, 1], [1, 2], [0, 1], [-1, -3]]},
        half=True,
    ),
    Case(
        "gathernd_slices",
        "(T[3,2,2] x, int64[2,3,1] i) => (T[2,3,2,2] y) { y = GatherND(x, i) }",
        lambda x, i: x[i[..., 0]],
        {"i": [[[0], [2], [2]], [[-1], [1], [0]]]},
    ),
    Case(
        "gathernd_pairs_of_slices",
        "(T[2,3,2] x, int64[3,2] i) => (T[3,2] y) { y = GatherND(x, i) }",
        lambda x, i: x[i[:, 0], i[:, 1]],
        {"i": [[0, 1], [1, -1], [1, 2]]},
    ),
    Case(
        "gathernd_batch",
        "(T[2,3,2] x, int64[2,4,1] i) => (T[2,4,2] y) { y = GatherND<batch_dims=1>(x, i) }",
        lambda x, i: torch.stack([x[k, i[k, :, 0]] for k in range(2)]),
        {"i": [[[0], [2], [2], [1]], [[-1], [1], [0], [0]]]},
    ),
    Case(
        "gathernd_two_batches",
        "(T[2,2,3] x, int64[2,2,1] i) => (T[2,2] y) { y = GatherND<batch_dims=2>(x, i) }",
        lambda x, i: x.gather(2, i % 3)[..., 0],
        {"i": [[[0], [2]], [[-2], [1]]]},
    ),
    Case(
        "gathernd_one_element",
        "(T[2,3] x, int64[2] i) => (T y) { y = GatherND(x, i) }",
        lambda x, i: x[1, 0],
        {"i": [1, 0]},
    ),
    Case(
        "gathernd_nothing",
        "(T[2,3] x, int64[0,1] i) => (T[0,3] y) { y = GatherND(x, i) }",
        lambda x, i: x[:0],
        {"i": []},
    ),
    Case(
        "gathernd_squared",
        "(T[2,3] x, int64[3,2] i) => (T[3] y) { z = GatherND(x, i) y = Mul(z, z) }",
        lambda x, i: x[i[:, 0], i[:, 1]] ** 2,
        {"i": [[0, 1], [1, 2], [0, 1]]},
    ),
]


def scattered(*, reduction="", axis=None, shapes="T[3,2] x, int64[2,2] i, T[2,2] u", output="T[3,2] y", squared=False):
    """Text of a ScatterElements."""
    attributes = [f'reduction="{reduction}"'] * bool(reduction) + [f"axis={axis}"] * (axis is not None)
    listed = f"<{','.join(attributes)}>" if attributes else ""
    square = "y = Mul(z, z)" if squared else ""
    return f"({shapes}) => ({output}) {{ {'z' if squared else 'y'} = ScatterElements{listed}(x, i, u) {square} }}"


def extreme(reduction):
    """A twin of ScatterElements along axis 0 with max or min."""
    return lambda x, i, u: x.scatter_reduce(0, i, u, reduction)


UNIQUE, REPEATED = {"i": [[0, 2], [1, -3]]}, {"i": [[0, 2], [0, 1]]}
TIES = {"x": [[1, 2], [3, 4], [5, 6]], "u": [[1, 6], [1, 9]], "i": [[0, 2], [0, 1]]}

SCATTERS = [
    Case("scatterelements", scattered(), lambda x, i, u: x.scatter(0, i % 3, u), UNIQUE, half=True),
    Case(
        "scatterelements_axis",
        scattered(axis=-1, shapes="T[2,3] x, int64[2,1] i, T[2,1] u", output="T[2,3] y"),
        lambda x, i, u: x.scatter(1, i % 3, u),
        {"i": [[-1], [1]]},
    ),
    Case(
        "scatterelements_repeated",
        scattered(),
        lambda x, i, u: x.scatter(0, i, u),
        REPEATED | {"u": [[1, 2], [1, 3]]},
        differences=False,
    ),
    Case(
        "scatterelements_nothing",
        scattered(shapes="T[3,2] x, int64[0,2] i, T[0,2] u"),
        lambda x, i, u: x + u.sum(),
        {"i": []},
    ),
    Case("scatterelements_squared", scattered(squared=True), lambda x, i, u: x.scatter(0, i % 3, u) ** 2, UNIQUE),
    Case("scatterelements_add", scattered(reduction="add"), lambda x, i, u: x.scatter_add(0, i, u), REPEATED),
    Case(
        "scatterelements_add_negative", scattered(reduction="add"), lambda x, i, u: x.scatter_add(0, i % 3, u), UNIQUE
    ),
    Case(
        "scatterelements_add_opset_16",
        scattered(reduction="add"),
        lambda x, i, u: x.scatter_add(0, i, u),
        REPEATED,
        opset=16,
    ),
    Case(
        "scatterelements_add_squared",
        scattered(reduction="add", squared=True),
        lambda x, i, u: x.scatter_add(0, i, u) ** 2,
        REPEATED,
    ),
    Case("scatterelements_max", scattered(reduction="max"), extreme("amax"), REPEATED, half=True),
    Case("scatterelements_min", scattered(reduction="min"), extreme("amin"), REPEATED),
    Case("scatterelements_max_ties", scattered(reduction="max"), extreme("amax"), TIES, differences=False),
    Case("scatterelements_min_ties", scattered(reduction="min"), extreme("amin"), TIES, differences=False),
    Case(
        "scatterelements_max_squared",
        scattered(reduction="max", squared=True),
        lambda x, i, u: x.scatter_reduce(0, i, u, "amax") ** 2,
        REPEATED,
    ),
    Case(
        "scatterelements_mul",
        scattered(reduction="mul"),
        lambda x, i, u: x.scatter_reduce(0, i, u, "prod"),
        REPEATED,
        wrt=("x",),
        low=0.5,
        high=2.0,
    ),
    Case(
        "scatternd_slices",
        "(T[4,2] x, int64[2,1] i, T[2,2] u) => (T[4,2] y) { y = ScatterND(x, i, u) }",
        lambda x, i, u: x.index_put((i[:, 0],), u),
        {"i": [[2], [-4]]},
        half=True,
    ),
    Case(
        "scatternd_elements",
        "(T[2,3] x, int64[2,2,2] i, T[2,2] u) => (T[2,3] y) { y = ScatterND(x, i, u) }",
        lambda x, i, u: x.index_put((i[..., 0], i[..., 1]), u),
        {"i": [[[0, 0], [1, 2]], [[1, 0], [-2, -1]]]},
    ),
    Case(
        "scatternd_nothing",
        "(T[2,3] x, int64[0,1] i, T[0,3] u) => (T[2,3] y) { y = ScatterND(x, i, u) }",
        lambda x, i, u: x + u.sum(),
        {"i": []},
    ),
    Case(
        "scatternd_squared",
        "(T[4,2] x, int64[2,1] i, T[2,2] u) => (T[4,2] y) { z = ScatterND(x, i, u) y = Mul(z, z) }",
        lambda x, i, u: x.index_put((i[:, 0],), u) ** 2,
        {"i": [[2], [0]]},
    ),
    Case(
        "scatternd_add",
        '(T[4,2] x, int64[3,1] i, T[3,2] u) => (T[4,2] y) { y = ScatterND<reduction="add">(x, i, u) }',
        lambda x, i, u: x.index_put((i[:, 0],), u, accumulate=True),
        {"i": [[2], [0], [2]]},
    ),
    Case(
        "scatternd_add_opset_16",
        '(T[4] x, int64[3,1] i, T[3] u) => (T[4] y) { y = ScatterND<reduction="add">(x, i, u) }',
        lambda x, i, u: x.index_put((i[:, 0],), u, accumulate=True),
        {"i": [[2], [0], [2]]},
        opset=16,
    ),
]

CASES = [*GATHERS, *SCATTERS]
