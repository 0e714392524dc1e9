"""Pooling."""

from math import inf

import torch
import torch.nn.functional as F  # noqa: N812
from gradient.checking import Case


def max_pool(kernel, *pads, indices=False, **options):
    """PyTorch's max pooling after `pads`, as of F.pad."""

    def apply(x):
        function = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[x.ndim - 3]
        return function(F.pad(x, pads, value=-inf), kernel, **options)

    return apply


def sums(x, kernel, pads, **options):
    """Sums over windows, by a convolution of every channel."""
    function = (F.conv1d, F.conv2d, F.conv3d)[x.ndim - 3]
    ones = torch.ones(x.shape[1], 1, *kernel, dtype=x.dtype)
    return function(F.pad(x, pads), ones, groups=x.shape[1], **options)


def mean_pool(kernel, *pads, with_pads=False, **options):
    """Average pooling, with what PyTorch's lacks: pads that differ, and dilations."""

    def apply(x):
        counted = torch.ones_like(F.pad(x, pads)) if with_pads else torch.ones_like(x)
        return sums(x, kernel, pads, **options) / sums(counted, kernel, () if with_pads else pads, **options)

    return apply


def average_pool(*arguments, **options):
    """PyTorch's average pooling."""
    return lambda x: (F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)[x.ndim - 3](x, *arguments, **options)


def lp_pool(p, kernel, *pads, **options):
    """Pooling by a norm; PyTorch's takes a power of x, not of |x|."""
    return lambda x: sums(x.abs() ** p, kernel, pads, **options) ** (1 / p)


def norm(p):
    """A norm of every channel."""
    return lambda x: torch.linalg.vector_norm(x, p, tuple(range(2, x.ndim)), keepdim=True)


TIES = [[[[0, 0, 1, 1], [0, 0, 1, 0], [2, 1, -1, -1], [1, 2, -1, -1]]]]

CASES = [
    # MaxPool.
    Case(
        "maxpool",
        "(T[2,3,6,5] x) => (T[2,3,3,2] y) { y = MaxPool<kernel_shape=[2,2], strides=[2,2]>(x) }",
        max_pool(2, stride=2),
        half=True,
    ),
    Case(
        "maxpool_1d",
        "(T[2,3,7] x) => (T[2,3,7] y) { y = MaxPool<kernel_shape=[3], pads=[1,1]>(x) }",
        max_pool(3, 1, 1, stride=1),
        opset=16,
    ),
    Case(
        "maxpool_3d",
        "(T[2,2,4,5,4] x) => (T[2,2,3,2,3] y) { y = MaxPool<kernel_shape=[2,3,2], strides=[1,2,1]>(x) }",
        max_pool((2, 3, 2), stride=(1, 2, 1)),
        opset=22,
    ),
    Case(
        "maxpool_asymmetric",
        "(T[1,2,5,6] x) => (T[1,2,3,6] y) { y = MaxPool<kernel_shape=[3,2], strides=[2,1], pads=[2,0,0,1]>(x) }",
        max_pool((3, 2), 0, 1, 2, 0, stride=(2, 1)),
    ),
    Case(
        "maxpool_dilations",
        "(T[1,2,7,6] x) => (T[1,2,3,3] y) { y = MaxPool<kernel_shape=[2,2], dilations=[2,3], strides=[2,1]>(x) }",
        max_pool(2, dilation=(2, 3), stride=(2, 1)),
    ),
    Case(
        "maxpool_ceil",
        "(T[1,2,6,6] x) => (T[1,2,3,3] y) { y = MaxPool<kernel_shape=[3,3], strides=[2,2], ceil_mode=1>(x) }",
        max_pool(3, stride=2, ceil_mode=True),
    ),
    Case(
        "maxpool_ceil_drops_padding",
        "(T[1,2,6] x) => (T[1,2,3] y) { y = MaxPool<kernel_shape=[2], strides=[3], pads=[1,1], ceil_mode=1>(x) }",
        lambda x: F.max_pool1d(x, 2, 3, 1, ceil_mode=True),
    ),
    Case(
        "maxpool_same_upper",
        '(T[1,2,5,6] x) => (T[1,2,3,6] y) { y = MaxPool<kernel_shape=[2,4], strides=[2,1], auto_pad="SAME_UPPER">(x) }',
        max_pool((2, 4), 1, 2, 0, 1, stride=(2, 1)),
    ),
    Case(
        "maxpool_same_lower",
        '(T[1,2,5,6] x) => (T[1,2,3,6] y) { y = MaxPool<kernel_shape=[2,4], strides=[2,1], auto_pad="SAME_LOWER">(x) }',
        max_pool((2, 4), 2, 1, 1, 0, stride=(2, 1)),
    ),
    Case(
        "maxpool_valid",
        '(T[1,2,5,6] x) => (T[1,2,4,5] y) { y = MaxPool<kernel_shape=[2,2], auto_pad="VALID">(x) }',
        max_pool(2, stride=1),
    ),
    Case(
        "maxpool_indices",
        "(T[2,2,4,5] x) => (T[2,2,3,4] y, int64[2,2,3,4] i) { y, i = MaxPool<kernel_shape=[2,2]>(x) }",
        lambda x: max_pool(2, stride=1)(x),
    ),
    Case(
        "maxpool_storage_order",
        "(T[2,2,4,5] x) => (T[2,2,3,4] y, int64[2,2,3,4] i) { y, i = MaxPool<kernel_shape=[2,2], storage_order=1>(x) }",
        lambda x: max_pool(2, stride=1)(x),
    ),
    Case(
        "maxpool_ties",
        "(T[1,1,4,4] x) => (T[1,1,3,3] y) { y = MaxPool<kernel_shape=[2,2]>(x) }",
        max_pool(2, stride=1),
        {"x": TIES},
        differences=False,
    ),
    Case(
        "maxpool_ties_in_padding",
        "(T[2,1,4,4] x) => (T[2,1,4,4] y) { y = MaxPool<kernel_shape=[3,3], pads=[1,1,1,1]>(x) }",
        lambda x: F.max_pool2d(x, 3, 1, 1),
        {"x": TIES * 2},
        differences=False,
    ),
    Case(
        "maxpool_infinities",
        "(T[2,1,4] x) => (T[2,1,4] y) { y = MaxPool<kernel_shape=[3], pads=[1,1]>(x) }",
        lambda x: F.max_pool1d(x, 3, 1, 1),
        {"x": [[[-inf, -inf, -inf, 1]], [[inf, 2, -inf, inf]]]},
        differences=False,
    ),
    Case(
        "maxpool_size_1",
        "(T[1,1,1,1] x) => (T[1,1,1,1] y) { y = MaxPool<kernel_shape=[3,3], pads=[1,1,1,1]>(x) }",
        max_pool(3, 1, 1, 1, 1),
    ),
    Case(
        "maxpool_empty",
        "(T[0,2,5] x) => (T[0,2,4] y) { y = MaxPool<kernel_shape=[2]>(x) }",
        max_pool(2, stride=1),
    ),
    # AveragePool.
    Case(
        "averagepool",
        "(T[2,3,6,5] x) => (T[2,3,3,2] y) { y = AveragePool<kernel_shape=[2,2], strides=[2,2]>(x) }",
        average_pool(2),
        half=True,
    ),
    Case(
        "averagepool_1d",
        "(T[2,3,7] x) => (T[2,3,7] y) { y = AveragePool<kernel_shape=[3], pads=[1,1]>(x) }",
        average_pool(3, 1, 1, count_include_pad=False),
        opset=16,
    ),
    Case(
        "averagepool_3d",
        "(T[1,2,4,5,4] x) => (T[1,2,3,3,3] y)"
        "{ y = AveragePool<kernel_shape=[2,3,2], strides=[1,2,2], pads=[0,1,1,0,1,1]>(x) }",
        average_pool((2, 3, 2), (1, 2, 2), (0, 1, 1), count_include_pad=False),
        opset=22,
    ),
    Case(
        "averagepool_stride_1",
        "(T[1,2,5,6] x) => (T[1,2,3,5] y) { y = AveragePool<kernel_shape=[3,2]>(x) }",
        average_pool((3, 2), 1),
    ),
    Case(
        "averagepool_count_include_pad",
        "(T[1,2,5,6] x) => (T[1,2,5,6] y)"
        "{ y = AveragePool<kernel_shape=[3,3], pads=[1,1,1,1], count_include_pad=1>(x) }",
        average_pool(3, 1, 1),
    ),
    Case(
        "averagepool_asymmetric",
        "(T[1,2,5,6] x) => (T[1,2,3,6] y) { y = AveragePool<kernel_shape=[3,2], strides=[2,1], pads=[2,0,0,1]>(x) }",
        mean_pool((3, 2), 0, 1, 2, 0, stride=(2, 1)),
    ),
    Case(
        "averagepool_asymmetric_count_include_pad",
        "(T[1,2,5,6] x) => (T[1,2,3,6] y)"
        "{ y = AveragePool<kernel_shape=[3,2], strides=[2,1], pads=[2,0,0,1], count_include_pad=1>(x) }",
        mean_pool((3, 2), 0, 1, 2, 0, with_pads=True, stride=(2, 1)),
    ),
    Case(
        "averagepool_uncovered",
        "(T[1,2,7,8] x) => (T[1,2,2,2] y) { y = AveragePool<kernel_shape=[2,3], strides=[4,3]>(x) }",
        average_pool((2, 3), (4, 3)),
    ),
    Case(
        "averagepool_ceil",
        "(T[1,2,6,6] x) => (T[1,2,3,4] y) { y = AveragePool<kernel_shape=[3,3], strides=[2,1], ceil_mode=1>(x) }",
        average_pool(3, (2, 1), ceil_mode=True),
    ),
    Case(
        "averagepool_ceil_count_include_pad",
        "(T[1,2,6,6] x) => (T[1,2,4,3] y)"
        "{ y = AveragePool<kernel_shape=[3,2], strides=[2,3], pads=[1,1,1,1], ceil_mode=1, count_include_pad=1>(x) }",
        average_pool((3, 2), (2, 3), 1, ceil_mode=True),
    ),
    Case(
        "averagepool_dilations",
        "(T[1,2,7,6] x) => (T[1,2,3,5] y)"
        "{ y = AveragePool<kernel_shape=[2,2], dilations=[3,2], strides=[2,1], pads=[1,1,0,0]>(x) }",
        mean_pool((2, 2), 1, 0, 1, 0, dilation=(3, 2), stride=(2, 1)),
    ),
    Case(
        "averagepool_same_upper",
        "(T[1,2,5,6] x) => (T[1,2,3,6] y)"
        '{ y = AveragePool<kernel_shape=[2,4], strides=[2,1], auto_pad="SAME_UPPER">(x) }',
        mean_pool((2, 4), 1, 2, 0, 1, stride=(2, 1)),
    ),
    Case(
        "averagepool_same_lower",
        '(T[1,2,5,6] x) => (T[1,2,5,6] y) { y = AveragePool<kernel_shape=[2,4], auto_pad="SAME_LOWER">(x) }',
        mean_pool((2, 4), 2, 1, 1, 0),
    ),
    Case(
        "averagepool_valid",
        '(T[1,2,5,6] x) => (T[1,2,4,5] y) { y = AveragePool<kernel_shape=[2,2], auto_pad="VALID">(x) }',
        average_pool(2, 1),
    ),
    Case(
        "averagepool_empty",
        "(T[0,2,5] x) => (T[0,2,2] y) { y = AveragePool<kernel_shape=[2], strides=[2]>(x) }",
        average_pool(2),
    ),
    # LpPool.
    Case(
        "lppool",
        "(T[2,3,6,5] x) => (T[2,3,3,2] y) { y = LpPool<kernel_shape=[2,2], strides=[2,2]>(x) }",
        lp_pool(2, (2, 2), stride=2),
        opset=16,
    ),
    Case(
        "lppool_p_1",
        "(T[1,2,7] x) => (T[1,2,7] y) { y = LpPool<kernel_shape=[3], pads=[1,1], p=1>(x) }",
        lp_pool(1, (3,), 1, 1),
    ),
    Case(
        "lppool_p_3",
        "(T[1,2,4,4,4] x) => (T[1,2,2,2,3] y) { y = LpPool<kernel_shape=[2,2,2], strides=[2,2,1], p=3>(x) }",
        lp_pool(3, (2, 2, 2), stride=(2, 2, 1)),
    ),
    Case(
        "lppool_dilations",
        "(T[1,2,7,6] x) => (T[1,2,2,4] y) { y = LpPool<kernel_shape=[2,2], dilations=[3,2], strides=[2,1]>(x) }",
        lp_pool(2, (2, 2), dilation=(3, 2), stride=(2, 1)),
    ),
    Case(
        "lppool_ceil",
        "(T[1,2,6,6] x) => (T[1,2,3,3] y) { y = LpPool<kernel_shape=[3,2], strides=[2,2], ceil_mode=1>(x) }",
        lambda x: lp_pool(2, (3, 2), stride=2)(F.pad(x, (0, 0, 0, 1))),
        opset=22,
    ),
    Case(
        "lppool_asymmetric",
        "(T[1,2,5,6] x) => (T[1,2,3,6] y) { y = LpPool<kernel_shape=[3,2], strides=[2,1], pads=[2,0,0,1]>(x) }",
        lp_pool(2, (3, 2), 0, 1, 2, 0, stride=(2, 1)),
    ),
    Case(
        "lppool_same_upper",
        '(T[1,2,5,6] x) => (T[1,2,3,6] y){ y = LpPool<kernel_shape=[2,4], strides=[2,1], auto_pad="SAME_UPPER">(x) }',
        lp_pool(2, (2, 4), 1, 2, 0, 1, stride=(2, 1)),
    ),
    Case(
        "lppool_same_lower",
        '(T[1,2,6] x) => (T[1,2,3] y) { y = LpPool<kernel_shape=[3], strides=[2], auto_pad="SAME_LOWER">(x) }',
        lp_pool(2, (3,), 1, 0, stride=2),
    ),
    Case(
        "lppool_zeros",
        "(T[1,1,4] x) => (T[1,1,2] y) { y = LpPool<kernel_shape=[2], strides=[2]>(x) }",
        lambda x: torch.linalg.vector_norm(x.reshape(1, 1, 2, 2), 2, -1),
        {"x": [[[0, 0, 3, 4]]]},
        differences=False,
    ),
    # Whole images.
    Case(
        "globalaveragepool",
        "(T[2,3,4,5] x) => (T[2,3,1,1] y) { y = GlobalAveragePool(x) }",
        lambda x: F.adaptive_avg_pool2d(x, 1),
        half=True,
    ),
    Case(
        "globalaveragepool_1d",
        "(T[2,3,4] x) => (T[2,3,1] y) { y = GlobalAveragePool(x) }",
        lambda x: F.adaptive_avg_pool1d(x, 1),
    ),
    Case(
        "globalmaxpool",
        "(T[2,3,4,5] x) => (T[2,3,1,1] y) { y = GlobalMaxPool(x) }",
        lambda x: F.adaptive_max_pool2d(x, 1),
        half=True,
    ),
    Case(
        "globalmaxpool_3d",
        "(T[2,3,2,3,2] x) => (T[2,3,1,1,1] y) { y = GlobalMaxPool(x) }",
        lambda x: F.adaptive_max_pool3d(x, 1),
        opset=22,
    ),
    Case(
        "globalmaxpool_ties",
        "(T[1,2,2,3] x) => (T[1,2,1,1] y) { y = GlobalMaxPool(x) }",
        lambda x: F.adaptive_max_pool2d(x, 1),
        {"x": [[[[0, 2, 1], [2, 2, 0]], [[-1, -1, -1], [-1, -1, -1]]]]},
        differences=False,
    ),
    Case("globallppool", "(T[2,3,4,5] x) => (T[2,3,1,1] y) { y = GlobalLpPool(x) }", norm(2)),
    Case("globallppool_p_1", "(T[2,3,4] x) => (T[2,3,1] y) { y = GlobalLpPool<p=1>(x) }", norm(1)),
    Case("globallppool_p_3", "(T[2,3,2,2,3] x) => (T[2,3,1,1,1] y) { y = GlobalLpPool<p=3>(x) }", norm(3)),
    Case(
        "globallppool_zeros",
        "(T[1,2,3] x) => (T[1,2,1] y) { y = GlobalLpPool(x) }",
        norm(2),
        {"x": [[[0, 0, 0], [0, 3, 4]]]},
        differences=False,
    ),
]
