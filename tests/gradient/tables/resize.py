"""Resize."""

from functools import partial
from itertools import product

from gradient.checking import Case
from torch.nn.functional import interpolate

IMAGE = [1, 2, 4, 8]
FACTORS = {"up": (2.5, 1.625), "down": (0.75, 0.375)}
"""Scales of the image of which float32 and float64 make the same lengths, and choose the same pixels."""

TRANSFORMATIONS = ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric")
ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


def case(id, before, after, torch=None, *, prefix="", inputs="", roi="", scales="", sizes="", opset=20, **named):
    """A case whose `roi`, `scales` and `sizes` are constants, or the names of inputs or of what `prefix` makes."""
    attributes = {name: named.pop(name) for name in list(named) if name in ATTRIBUTES}
    written = ", ".join(f'{k}="{v}"' if isinstance(v, str) else f"{k}={v}" for k, v in attributes.items())
    constants, arguments = [], ["x"]
    for name, dtype, value in (("roi", "float", roi), ("scales", "float", scales), ("sizes", "int64", sizes)):
        arguments.append(value if isinstance(value, str) else name)
        if not isinstance(value, str):
            constants.append(f"{dtype}[{len(value)}] {name} = {{{', '.join(map(str, value))}}}")
    while not arguments[-1]:
        arguments.pop()
    text = f"(T{list(before)} x{inputs}) => (T{list(after)} y) "
    text += f"<{', '.join(constants)}> " if constants else ""
    text += f"{{ {prefix} y = Resize{f'<{written}>' if written else ''}({', '.join(arguments)}) }}"
    return Case(f"resize_{id}", text, torch, wrt=("x",), opset=opset, **named)


ATTRIBUTES = (
    "antialias",
    "axes",
    "coordinate_transformation_mode",
    "cubic_coeff_a",
    "exclude_outside",
    "extrapolation_value",
    "keep_aspect_ratio_policy",
    "mode",
    "nearest_mode",
)


def resized(shape, scales):
    """Lengths after a Resize."""
    return [int(length * scale) for length, scale in zip(shape, scales, strict=True)]


EVERY_MODE = [
    case(
        "_".join(filter(None, (mode, transformation, name, rounding))),
        IMAGE,
        resized(IMAGE, (1, 1, *factors)),
        scales=(1.0, 1.0, *factors),
        mode=mode,
        coordinate_transformation_mode=transformation,
        second=False,
        **({"nearest_mode": rounding} if rounding else {}),
    )
    for (name, factors), (mode, rounding), transformation in product(
        FACTORS.items(), [("linear", ""), ("cubic", ""), *(("nearest", r) for r in ROUNDINGS)], TRANSFORMATIONS
    )
]

BLOCKS = [
    case(
        f"blocks_{transformation}_{rounding}",
        IMAGE,
        [1, 2, 8, 24],
        scales=(1.0, 1.0, 2.0, 3.0),
        coordinate_transformation_mode=transformation,
        nearest_mode=rounding,
    )
    for transformation, rounding in product(TRANSFORMATIONS, ("round_prefer_ceil", "floor"))
]

ANTIALIASED = [
    case(
        f"antialias_{mode}_{transformation}_{exclude}_{name}",
        IMAGE,
        resized(IMAGE, (1, 1, *factors)),
        scales=(1.0, 1.0, *factors),
        mode=mode,
        antialias=1,
        coordinate_transformation_mode=transformation,
        exclude_outside=exclude,
        second=False,
    )
    for (name, factors), mode, transformation, exclude in product(
        FACTORS.items(), ("linear", "cubic"), ("half_pixel", "asymmetric"), (0, 1)
    )
]

REGIONS = {
    "inside": (0.0, 0.0, 0.1, 0.2, 1.0, 1.0, 0.8, 0.9),
    "outside": (0.0, 0.0, -0.45, 0.3, 1.0, 1.0, 0.9, 1.4),
    "turned": (0.0, 0.0, 0.9, 0.3, 1.0, 1.0, 0.1, 0.75),
}
CROP = partial(case, before=IMAGE, coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=3.5)

CROPS = [
    *(
        CROP(f"crop_{mode}_{name}", after=[1, 2, 7, 11], roi=roi, sizes=(1, 2, 7, 11), mode=mode)
        for mode, (name, roi) in product(("nearest", "linear", "cubic"), REGIONS.items())
    ),
    CROP("crop_to_one", after=[1, 2, 1, 3], roi=REGIONS["inside"], sizes=(1, 2, 1, 3), mode="linear"),
    CROP("crop_scales", after=[1, 2, 8, 12], roi=REGIONS["outside"], scales=(1.0, 1.0, 2.0, 1.5), mode="linear"),
    CROP("crop_axes", after=[1, 2, 3, 5], roi=(0.1, 0.2, 0.9, 0.7), sizes=(3, 5), mode="linear", axes=[2, 3]),
    CROP("crop_antialias", after=[1, 2, 2, 5], roi=REGIONS["inside"], sizes=(1, 2, 2, 5), mode="linear", antialias=1),
    CROP(
        "crop_at_run_time",
        after=[1, 2, 7, 11],
        inputs=", T[8] r",
        feed={"r": REGIONS["outside"]},
        roi="r",
        sizes=(1, 2, 7, 11),
        mode="linear",
    ),
]

KEPT = [
    case(
        f"{policy}_{mode}_{transformation}",
        [2, 2, 5, 7],
        [2, 2, *after],
        sizes=(9, 7),
        mode=mode,
        coordinate_transformation_mode=transformation,
        keep_aspect_ratio_policy=policy,
        axes=[2, 3],
        second=mode == "linear",
    )
    for (policy, after), mode, transformation in product(
        {"not_larger": (5, 7), "not_smaller": (9, 13)}.items(),
        ("nearest", "linear", "cubic"),
        ("half_pixel", "half_pixel_symmetric", "asymmetric"),
    )
] + [
    case(
        "not_smaller_all_axes",
        [5, 7],
        [10, 14],
        sizes=(10, 7),
        mode="linear",
        coordinate_transformation_mode="align_corners",
        keep_aspect_ratio_policy="not_smaller",
    ),
    case(
        "not_larger_antialias",
        [9, 7],
        [4, 3],
        sizes=(4, 7),
        mode="linear",
        antialias=1,
        keep_aspect_ratio_policy="not_larger",
    ),
]

TWICE = (1.0, 1.0, 2.0, 2.0)
LINEAR = {"mode": "linear"}
CUBIC = {"mode": "cubic"}
LIKE_NEAREST = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
CORNERS = {"coordinate_transformation_mode": "align_corners"}


def twin(mode, **named):
    """PyTorch's own."""
    return partial(interpolate, mode=mode, **named)


TWINS = [
    case(
        "nearest_twice", IMAGE, [1, 2, 8, 16], twin("nearest", scale_factor=2), scales=TWICE, **LIKE_NEAREST, half=True
    ),
    case(
        "nearest_any", IMAGE, [1, 2, 5, 6], twin("nearest", size=(5, 6)), sizes=(1, 2, 5, 6), **LIKE_NEAREST, half=True
    ),
    case(
        "nearest_exact",
        IMAGE,
        [1, 2, 7, 5],
        twin("nearest-exact", size=(7, 5)),
        sizes=(1, 2, 7, 5),
        nearest_mode="round_prefer_ceil",
    ),
    case("nearest_1d", [2, 3, 5], [2, 3, 8], twin("nearest", size=8), sizes=(2, 3, 8), **LIKE_NEAREST),
    case(
        "nearest_3d",
        [1, 1, 2, 3, 2],
        [1, 1, 4, 3, 5],
        twin("nearest", size=(4, 3, 5)),
        sizes=(1, 1, 4, 3, 5),
        **LIKE_NEAREST,
    ),
    case("linear_1d", [2, 3, 5], [2, 3, 8], twin("linear", size=8), sizes=(2, 3, 8), **LINEAR),
    case("linear_2d", IMAGE, [1, 2, 8, 16], twin("bilinear", scale_factor=2), scales=TWICE, **LINEAR, half=True),
    case("linear_down", IMAGE, [1, 2, 3, 2], twin("bilinear", size=(3, 2)), sizes=(1, 2, 3, 2), **LINEAR),
    case(
        "linear_corners",
        IMAGE,
        [1, 2, 7, 3],
        twin("bilinear", size=(7, 3), align_corners=True),
        sizes=(1, 2, 7, 3),
        **LINEAR,
        **CORNERS,
    ),
    case(
        "linear_3d",
        [1, 1, 2, 3, 4],
        [1, 1, 3, 6, 2],
        twin("trilinear", size=(3, 6, 2)),
        sizes=(1, 1, 3, 6, 2),
        **LINEAR,
    ),
    case("cubic_2d", IMAGE, [1, 2, 8, 16], twin("bicubic", scale_factor=2), scales=TWICE, **CUBIC, half=True),
    case(
        "cubic_corners",
        IMAGE,
        [1, 2, 7, 3],
        twin("bicubic", size=(7, 3), align_corners=True),
        sizes=(1, 2, 7, 3),
        **CUBIC,
        **CORNERS,
    ),
    case(
        "linear_antialias",
        IMAGE,
        [1, 2, 3, 3],
        twin("bilinear", size=(3, 3), antialias=True),
        sizes=(1, 2, 3, 3),
        antialias=1,
        exclude_outside=1,
        **LINEAR,
    ),
    case(
        "cubic_antialias",
        IMAGE,
        [1, 2, 2, 4],
        twin("bicubic", size=(2, 4), antialias=True),
        sizes=(1, 2, 2, 4),
        antialias=1,
        exclude_outside=1,
        cubic_coeff_a=-0.5,
        **CUBIC,
    ),
]

SPELLINGS = [
    case("opset_16", IMAGE, [1, 2, 6, 4], scales=(1.0, 1.0, 1.5, 0.5), opset=16, **LINEAR),
    case("opset_16_sizes", IMAGE, [1, 2, 6, 4], sizes=(1, 2, 6, 4), opset=16, **CUBIC, exclude_outside=1),
    case("opset_18", IMAGE, [1, 2, 6, 4], scales=(1.5, 0.5), axes=[2, 3], opset=18, **LINEAR),
    case("opset_24", IMAGE, [1, 2, 6, 4], sizes=(6, 4), axes=[2, 3], opset=24, **LINEAR),
    case("axes_swapped", IMAGE, [1, 2, 6, 4], sizes=(4, 6), axes=[3, 2], **LINEAR),
    case("blocks_axes", IMAGE, [1, 2, 4, 16], scales=(2.0,), axes=[3], half=True),
    case("channels_last", [1, 4, 5, 2], [1, 7, 3, 2], sizes=(1, 7, 3, 2), **LINEAR),
    case("all_axes", [3, 4], [5, 2], sizes=(5, 2), **CUBIC, cubic_coeff_a=-0.6),
    case("rank_1", [5], [8], sizes=(8,), nearest_mode="ceil"),
    case("unchanged", IMAGE, IMAGE, scales=(1.0, 1.0, 1.0, 1.0), **LINEAR),
    case("unchanged_length", [5, 4], [5, 8], scales=(1.1, 2.0), **LINEAR),
    case(
        "part_of_a_pixel",
        [5, 7],
        [8, 9],
        scales=(1.7, 1.4),
        **LINEAR,
        coordinate_transformation_mode="half_pixel_symmetric",
    ),
    case(
        "to_one", IMAGE, [1, 2, 1, 1], sizes=(1, 2, 1, 1), **LINEAR, coordinate_transformation_mode="pytorch_half_pixel"
    ),
    case("from_one", [1, 2, 1, 1], [1, 2, 3, 4], sizes=(1, 2, 3, 4), **CUBIC),
    case("empty_scales", IMAGE, [1, 2, 6, 4], roi=(), scales=(), sizes=(1, 2, 6, 4), opset=16, **LINEAR),
    case("empty_batch", [0, 2, 3, 3], [0, 2, 6, 4], scales=(1.0, 1.0, 2.0, 1.5), **LINEAR),
    case("empty_result", [1, 2, 3, 3], [1, 2, 0, 4], scales=(1.0, 1.0, 0.2, 1.5), **LINEAR),
    case(
        "sizes_at_run_time", IMAGE, [1, 2, 6, 5], inputs=", int64[4] n", feed={"n": [1, 2, 6, 5]}, sizes="n", **LINEAR
    ),
    case(
        "blocks_of_sizes",
        IMAGE,
        [1, 2, 8, 24],
        inputs=", int64[4] n",
        feed={"n": [1, 2, 8, 24]},
        sizes="n",
        **LIKE_NEAREST,
    ),
    case(
        "kept_at_run_time",
        [5, 7],
        [9, 13],
        inputs=", int64[2] n",
        feed={"n": [9, 7]},
        sizes="n",
        **CUBIC,
        keep_aspect_ratio_policy="not_smaller",
    ),
    case(
        "scales_at_run_time",
        IMAGE,
        [1, 2, 6, 4],
        inputs=", int64[2] n",
        feed={"n": [3, 1]},
        prefix="half = Constant<value_floats=[0.5]>() one = Constant<value_floats=[1.0, 1.0]>() f = Cast<to=1>(n) "
        "h = Mul(f, half) s = Concat<axis=0>(one, h)",
        scales="s",
        antialias=1,
        **LINEAR,
    ),
    case(
        "sizes_of_the_batch",
        IMAGE,
        [1, 2, 6, 4],
        inputs=", int64[2] n",
        feed={"n": [6, 4]},
        prefix="zero = Constant<value_ints=[0]>() two = Constant<value_ints=[2]>() "
        "s = Shape(x) nc = Slice(s, zero, two) z = Concat<axis=0>(nc, n)",
        sizes="z",
        **LINEAR,
    ),
]

CASES = [*EVERY_MODE, *BLOCKS, *ANTIALIASED, *CROPS, *KEPT, *TWINS, *SPELLINGS]
