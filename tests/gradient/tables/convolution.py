"""Convolutions."""

import torch.nn.functional as F  # noqa: N812
from gradient.checking import Case


def conv(*pads, **options):
    """PyTorch's convolution after `pads`, from the last axis backwards, as of F.pad: it has no asymmetric ones."""

    def apply(x, w, b=None):
        function = (F.conv1d, F.conv2d, F.conv3d)[x.ndim - 3]
        return function(F.pad(x, pads), w, b, **options)

    return apply


def conv_transpose(*crop, **options):
    """PyTorch's transposed convolution, with what F.pad takes off by negative pads."""

    def apply(x, w, b=None):
        function = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[x.ndim - 3]
        return F.pad(function(x, w, b, **options), [-n for n in crop])

    return apply


CASES = [
    # Conv: ranks, bias, groups.
    Case("conv", "(T[2,2,5,6] x, T[3,2,3,2] w, T[3] b) => (T[2,3,3,5] y) { y = Conv(x, w, b) }", conv(), half=True),
    Case("conv_1d", "(T[2,2,7] x, T[3,2,3] w, T[3] b) => (T[2,3,7] y) { y = Conv<pads=[1,1]>(x, w, b) }", conv(1, 1)),
    Case(
        "conv_3d",
        "(T[1,2,4,5,3] x, T[2,2,2,3,2] w) => (T[1,2,4,3,4] y) { y = Conv<pads=[1,0,1,0,0,1]>(x, w) }",
        conv(1, 1, 0, 0, 1, 0),
    ),
    Case(
        "conv_3d_strides",
        "(T[1,2,6,5,4] x, T[2,2,2,3,2] w) => (T[1,2,3,2,1] y)"
        "{ y = Conv<strides=[2,2,3], pads=[0,0,1,0,1,0], dilations=[1,1,2]>(x, w) }",
        conv(1, 0, 0, 1, 0, 0, stride=(2, 2, 3), dilation=(1, 1, 2)),
    ),
    Case(
        "conv_few_outputs",
        "(T[1,4,4,4] x, T[1,4,3,3] w) => (T[1,1,4,4] y) { y = Conv<pads=[1,1,1,1]>(x, w) }",
        conv(1, 1, 1, 1),
    ),
    Case(
        "conv_many_outputs",
        "(T[1,1,4,4] x, T[4,1,3,3] w) => (T[1,4,4,4] y) { y = Conv<pads=[1,1,1,1]>(x, w) }",
        conv(1, 1, 1, 1),
    ),
    Case("conv_1x1", "(T[2,3,4,3] x, T[2,3,1,1] w) => (T[2,2,4,3] y) { y = Conv(x, w) }", conv()),
    Case(
        "conv_1x1_strides",
        "(T[2,3,4,3] x, T[2,3,1,1] w) => (T[2,2,2,2] y) { y = Conv<strides=[3,2]>(x, w) }",
        conv(stride=(3, 2)),
    ),
    Case(
        "conv_wide_kernel",
        "(T[2,1,6,7] x, T[2,1,5,4] w) => (T[2,2,3,6] y) { y = Conv<pads=[0,1,1,1]>(x, w) }",
        conv(1, 1, 0, 1),
    ),
    Case(
        "conv_wide_kernel_strides",
        "(T[2,1,9,8] x, T[2,1,5,4] w) => (T[2,2,2,1] y) { y = Conv<strides=[3,2], dilations=[1,2]>(x, w) }",
        conv(stride=(3, 2), dilation=(1, 2)),
    ),
    Case(
        "conv_whole_image",
        "(T[2,2,3,4] x, T[3,2,3,4] w, T[3] b) => (T[2,3,1,1] y) { y = Conv(x, w, b) }",
        conv(),
    ),
    Case(
        "conv_groups",
        "(T[2,4,5,4] x, T[6,2,3,2] w, T[6] b) => (T[2,6,5,4] y) { y = Conv<group=2, pads=[1,0,1,1]>(x, w, b) }",
        conv(0, 1, 1, 1, groups=2),
        half=True,
    ),
    Case(
        "conv_groups_strides",
        "(T[2,4,6,5] x, T[2,2,3,2] w) => (T[2,2,2,2] y) { y = Conv<group=2, strides=[2,2]>(x, w) }",
        conv(stride=2, groups=2),
    ),
    Case(
        "conv_depthwise",
        "(T[2,3,5,4] x, T[3,1,3,3] w) => (T[2,3,5,4] y) { y = Conv<group=3, pads=[1,1,1,1]>(x, w) }",
        conv(1, 1, 1, 1, groups=3),
    ),
    Case(
        "conv_depthwise_multiplied",
        "(T[1,2,5] x, T[6,1,2] w) => (T[1,6,4] y) { y = Conv<group=2>(x, w) }",
        conv(groups=2),
    ),
    Case(
        "conv_depthwise_wide_kernel",
        "(T[2,3,6,5] x, T[3,1,5,4] w) => (T[2,3,2,2] y) { y = Conv<group=3>(x, w) }",
        conv(groups=3),
    ),
    # Strides, dilations and pads of all kinds.
    Case(
        "conv_strides_uncovered",
        "(T[2,2,8,7] x, T[3,2,3,2] w) => (T[2,3,2,4] y)"
        "{ y = Conv<strides=[3,2], pads=[0,1,0,1], dilations=[2,1]>(x, w) }",
        conv(1, 1, 0, 0, stride=(3, 2), dilation=(2, 1)),
    ),
    Case(
        "conv_strides_beyond_kernel",
        "(T[1,2,9] x, T[2,2,2] w) => (T[1,2,2] y) { y = Conv<strides=[5]>(x, w) }",
        conv(stride=5),
    ),
    Case(
        "conv_strides_end_in_padding",
        "(T[1,2,6,6] x, T[2,2,3,3] w) => (T[1,2,3,3] y) { y = Conv<strides=[2,2], pads=[1,1,1,1]>(x, w) }",
        conv(1, 1, 1, 1, stride=2),
    ),
    Case(
        "conv_dilations",
        "(T[2,2,7,6] x, T[3,2,3,2] w) => (T[2,3,5,5] y) { y = Conv<dilations=[2,3], pads=[1,0,1,2]>(x, w) }",
        conv(0, 2, 1, 1, dilation=(2, 3)),
    ),
    Case(
        "conv_more_pads_than_kernel",
        "(T[1,2,4] x, T[2,2,2] w) => (T[1,2,8] y) { y = Conv<pads=[3,2]>(x, w) }",
        conv(3, 2),
    ),
    Case(
        "conv_kernel_shape",
        "(T[1,2,5,6] x, T[2,2,3,2] w) => (T[1,2,3,5] y) { y = Conv<kernel_shape=[3,2]>(x, w) }",
        conv(),
        opset=16,
    ),
    Case(
        "conv_kernel_shape_strides",
        "(T[1,2,6,6] x, T[2,2,3,2] w) => (T[1,2,2,3] y)"
        '{ y = Conv<kernel_shape=[3,2], strides=[2,2], auto_pad="NOTSET">(x, w) }',
        conv(stride=2),
        opset=22,
    ),
    # auto_pad.
    Case(
        "conv_valid",
        '(T[1,2,5,6] x, T[2,2,3,2] w) => (T[1,2,3,5] y) { y = Conv<auto_pad="VALID">(x, w) }',
        conv(),
    ),
    Case(
        "conv_same_upper",
        '(T[1,2,5,6] x, T[2,2,2,4] w) => (T[1,2,5,6] y) { y = Conv<auto_pad="SAME_UPPER">(x, w) }',
        conv(1, 2, 0, 1),
    ),
    Case(
        "conv_same_upper_kernel_shape",
        '(T[1,2,5,6] x, T[2,2,2,4] w) => (T[1,2,5,6] y) { y = Conv<kernel_shape=[2,4], auto_pad="SAME_UPPER">(x, w) }',
        conv(1, 2, 0, 1),
    ),
    Case(
        "conv_same_lower",
        '(T[1,2,5,6] x, T[2,2,2,4] w) => (T[1,2,5,6] y) { y = Conv<auto_pad="SAME_LOWER">(x, w) }',
        conv(2, 1, 1, 0),
    ),
    Case(
        "conv_same_upper_strides",
        '(T[1,2,7,6] x, T[2,2,2,3] w) => (T[1,2,3,3] y){ y = Conv<auto_pad="SAME_UPPER", strides=[3,2]>(x, w) }',
        conv(0, 1, 0, 1, stride=(3, 2)),
    ),
    Case(
        "conv_same_lower_strides",
        "(T[1,4,7,6] x, T[2,2,4,3] w) => (T[1,2,3,3] y)"
        '{ y = Conv<auto_pad="SAME_LOWER", strides=[3,2], group=2>(x, w) }',
        conv(1, 0, 2, 1, stride=(3, 2), groups=2),
    ),
    Case(
        "conv_same_strides_beyond_kernel",
        '(T[1,2,8] x, T[2,2,1] w) => (T[1,2,3] y) { y = Conv<auto_pad="SAME_UPPER", strides=[3]>(x, w) }',
        conv(stride=3),
    ),
    # Sizes of 1 and of 0, and who is wanted.
    Case(
        "conv_size_1",
        "(T[1,1,1,1] x, T[1,1,3,3] w, T[1] b) => (T[1,1,1,1] y) { y = Conv<pads=[1,1,1,1]>(x, w, b) }",
        conv(1, 1, 1, 1),
    ),
    Case("conv_empty", "(T[0,2,5] x, T[3,2,3] w, T[3] b) => (T[0,3,3] y) { y = Conv(x, w, b) }", conv()),
    Case("conv_empty_wide_kernel", "(T[0,1,25] x, T[3,1,20] w) => (T[0,3,6] y) { y = Conv(x, w) }", conv()),
    Case(
        "conv_of_itself",
        "(T[2,2,5,4] x) => (T[2,2,4,3] y) { w = Slice(x, s, e, a) y = Conv(x, w) }".replace(
            "{", "{ s = Constant<value_ints=[0,0]>() e = Constant<value_ints=[2,2]>() a = Constant<value_ints=[2,3]>()"
        ),
        lambda x: F.conv2d(x, x[:, :, :2, :2]),
    ),
    Case("conv_only_w", "(T[2,2,6] x, T[2,2,3] w) => (T[2,2,4] y) { y = Conv(x, w) }", conv(), wrt=("w",)),
    Case("conv_only_x", "(T[2,2,6] x, T[2,2,3] w) => (T[2,2,4] y) { y = Conv(x, w) }", conv(), wrt=("x",)),
    # ConvTranspose: ranks, bias, groups, and its pads.
    Case(
        "convtranspose",
        "(T[2,2,3,4] x, T[2,3,3,2] w, T[3] b) => (T[2,3,5,5] y) { y = ConvTranspose(x, w, b) }",
        conv_transpose(),
    ),
    Case(
        "convtranspose_1d",
        "(T[2,2,4] x, T[2,3,3] w, T[3] b) => (T[2,3,8] y)"
        "{ y = ConvTranspose<strides=[2], pads=[1,1], output_padding=[1]>(x, w, b) }",
        conv_transpose(stride=2, padding=1, output_padding=1),
    ),
    Case(
        "convtranspose_3d",
        "(T[1,2,2,3,2] x, T[2,2,2,3,2] w) => (T[1,2,4,6,3] y)"
        "{ y = ConvTranspose<strides=[2,2,1], pads=[0,0,0,0,1,0]>(x, w) }",
        conv_transpose(0, 0, 0, 1, 0, 0, stride=(2, 2, 1)),
    ),
    Case(
        "convtranspose_groups",
        "(T[2,4,3,4] x, T[4,3,2,2] w, T[6] b) => (T[2,6,4,5] y) { y = ConvTranspose<group=2>(x, w, b) }",
        conv_transpose(groups=2),
    ),
    Case(
        "convtranspose_depthwise",
        "(T[2,3,3,2] x, T[3,1,2,2] w) => (T[2,3,6,4] y)"
        "{ y = ConvTranspose<group=3, strides=[2,2], kernel_shape=[2,2]>(x, w) }",
        conv_transpose(stride=2, groups=3),
        opset=16,
    ),
    Case(
        "convtranspose_asymmetric",
        "(T[1,2,3,4] x, T[2,2,3,3] w) => (T[1,2,7,9] y)"
        "{ y = ConvTranspose<strides=[2,3], dilations=[2,1], pads=[0,2,2,1]>(x, w) }",
        conv_transpose(2, 1, 0, 2, stride=(2, 3), dilation=(2, 1)),
    ),
    Case(
        "convtranspose_output_padding",
        "(T[1,2,3,2] x, T[2,2,3,2] w) => (T[1,2,6,7] y)"
        "{ y = ConvTranspose<strides=[2,3], pads=[1,0,1,0], output_padding=[1,2]>(x, w) }",
        conv_transpose(stride=(2, 3), padding=(1, 0), output_padding=(1, 2)),
        opset=22,
    ),
    Case(
        "convtranspose_strides_beyond_kernel",
        "(T[1,2,3] x, T[2,2,2] w) => (T[1,2,12] y) { y = ConvTranspose<strides=[4], output_padding=[2]>(x, w) }",
        conv_transpose(stride=4, output_padding=2),
    ),
    Case(
        "convtranspose_wide_kernel",
        "(T[2,1,3,2] x, T[1,1,5,4] w) => (T[2,1,9,7] y) { y = ConvTranspose<strides=[2,3]>(x, w) }",
        conv_transpose(stride=(2, 3)),
    ),
    Case(
        "convtranspose_valid",
        '(T[1,2,3] x, T[2,2,2] w) => (T[1,2,6] y) { y = ConvTranspose<strides=[2], auto_pad="VALID">(x, w) }',
        conv_transpose(stride=2),
    ),
    Case(
        "convtranspose_same_upper",
        "(T[1,2,3,4] x, T[2,2,3,3] w) => (T[1,2,6,4] y)"
        '{ y = ConvTranspose<strides=[2,1], auto_pad="SAME_UPPER">(x, w) }',
        conv_transpose(1, 1, 0, 1, stride=(2, 1)),
    ),
    Case(
        "convtranspose_same_lower",
        "(T[1,2,3,4] x, T[2,2,3,3] w) => (T[1,2,6,4] y)"
        '{ y = ConvTranspose<strides=[2,1], auto_pad="SAME_LOWER">(x, w) }',
        conv_transpose(1, 1, 1, 0, stride=(2, 1)),
    ),
    Case(
        "convtranspose_output_shape",
        "(T[1,2,3,4] x, T[2,2,3,3] w) => (T[1,2,6,8] y){ y = ConvTranspose<strides=[2,2], output_shape=[6,8]>(x, w) }",
        conv_transpose(1, 0, 1, 0, stride=2),
    ),
    Case(
        "convtranspose_output_shape_upper",
        "(T[1,2,3,4] x, T[2,2,3,3] w) => (T[1,2,4,8] y)"
        '{ y = ConvTranspose<strides=[2,2], output_shape=[4,8], auto_pad="SAME_UPPER">(x, w) }',
        conv_transpose(0, 1, 1, 2, stride=2),
    ),
    Case(
        "convtranspose_output_shape_padding",
        "(T[1,2,3] x, T[2,2,3] w) => (T[1,2,6] y)"
        "{ y = ConvTranspose<strides=[2], output_padding=[1], output_shape=[6], pads=[5,5]>(x, w) }",
        conv_transpose(1, 1, stride=2, output_padding=1),
    ),
    Case(
        "convtranspose_empty",
        "(T[0,2,4] x, T[2,3,3] w, T[3] b) => (T[0,3,6] y) { y = ConvTranspose(x, w, b) }",
        conv_transpose(),
    ),
]
