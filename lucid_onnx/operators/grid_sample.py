"""Sampling an image at a grid of coordinates, and its gradients, as ONNX graphs of standard operators.

Mirrors `lucid_onnx.reference.grid_sample`.
"""

from __future__ import annotations

from lucid_onnx.operators import interpolation
from lucid_onnx.operators.accumulate import scatter_add
from lucid_onnx.operators.building import (
    Builder,
    Value,
    cast,
    compute_dtype,
    constant,
    count,
    dims,
    dtype_of,
    float_dtype_of,
    ints,
    known_shape,
    named,
    reshape,
    scope,
    typed,
)
from lucid_onnx.operators.coordinates import unnormalize, unnormalize_slope
from lucid_onnx.operators.forward import Forward, coordinate_planes
from lucid_onnx.reference.schema import TAPS, as_flag, check_grad_out, check_grid_sample


def grid_sample(
    op: Builder,
    x: Value,
    grid: Value,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
    assume_finite: bool = False,
) -> Value:
    """Sample the image `x` at the normalised coordinates `grid`. Mirrors ``grid_sample_nd``.

    Parameters
    ----------
    op
        The builder.
    x : Value
        (N, C, H, W) or (N, C, D, H, W), of a floating dtype and of known rank; any dimension may be symbolic.
    grid : Value
        (N, Ho, Wo, 2) or (N, Do, Ho, Wo, 3), of a floating dtype, normalised.
    mode : {"bilinear", "nearest", "bicubic"}
        "bicubic" of a 5-D image is the product of three cubic interpolations, as ONNX defines it.
    padding_mode : {"zeros", "border", "reflection"}
        What lies outside the image.
    align_corners : bool, optional
        Whether -1 and 1 are the centres of the outermost pixels; None means False.
    assume_finite : bool
        Whether NaN and infinite coordinates need not land where the reference lets them. That saves a few
        comparisons a point.

    Returns
    -------
    Value
        (N, C, Ho, Wo) or (N, C, Do, Ho, Wo) of `x`'s dtype.

    Raises
    ------
    ArgumentError
        An unknown mode or padding mode, or shapes of which it is known that they do not fit.
    DtypeError
        An image or a grid of no floating dtype.

    Examples
    --------
    >>> import onnx_ir as ir
    >>> from onnxscript import GraphBuilder
    >>> builder = GraphBuilder(ir.Graph([], [], nodes=[], opset_imports={"": 20}))
    >>> x = builder.input("x", ir.DataType.FLOAT, ["N", 3, "H", "W"])
    >>> grid = builder.input("grid", ir.DataType.FLOAT, ["N", 8, 8, 2])
    >>> grid_sample(builder.op, x, grid, padding_mode="border").dtype
    FLOAT
    """
    plan = Forward(op, x, grid, mode, padding_mode, align_corners, assume_finite)
    y = plan.chosen() if mode == "nearest" and not plan.is_large() else plan.gathered()
    return cast(plan.op, y, dtype_of(x, "x"))


def grid_sample_backward(
    op: Builder,
    grad_out: Value,
    x: Value,
    grid: Value,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> tuple[Value, Value]:
    """Gradients of `grid_sample` with respect to the image and to the grid. Mirrors ``grid_sample_nd_backward``.

    Parameters
    ----------
    op
        The builder.
    grad_out : Value
        Gradient with respect to the output, of its shape and of a floating dtype.
    x, grid, mode, padding_mode, align_corners
        As in the forward call.

    Returns
    -------
    grad_x, grad_grid : Value
        Of the shapes and dtypes of `x` and `grid`.

    Raises
    ------
    ArgumentError, DtypeError
        As `grid_sample`; also for a `grad_out` that does not fit.

    Examples
    --------
    >>> import onnx_ir as ir
    >>> from onnxscript import GraphBuilder
    >>> builder = GraphBuilder(ir.Graph([], [], nodes=[], opset_imports={"": 20}))
    >>> shapes = {"grad_out": ["N", 3, 8, 8], "x": ["N", 3, "H", "W"], "grid": ["N", 8, 8, 2]}
    >>> inputs = [builder.input(name, ir.DataType.FLOAT, shape) for name, shape in shapes.items()]
    >>> [gradient.dtype for gradient in grid_sample_backward(builder.op, *inputs)]
    [FLOAT, FLOAT]
    """
    plan = _Backward(op, x, grid, mode, padding_mode, align_corners, "grid_sample_backward")
    op = plan.op
    float_dtype_of(grad_out, "grid_sample_backward", "grad_out")
    check_grad_out(*(known_shape(value, name) for value, name in ((x, "x"), (grid, "grid"), (grad_out, "grad_out"))))
    grad_y = named(_to_channels(op, cast(op, grad_out, plan.dtype), plan.rank), "grad_y")
    image, (index, inside) = plan.table(), plan.read()
    grad_image = op.Expand(constant(op, 0.0, plan.dtype), op.Shape(image))
    dots = []
    for k in range(plan.corner_count):
        with scope(op, f"corner_{k}"):
            at, weight = plan.corner(k, index)
            update = grad_y if weight is None else op.Mul(grad_y, weight)
            grad_image = named(scatter_add(op, grad_image, at, update), f"grad_pixels_{k}")
            if mode != "nearest":
                pixels = named(op.Gather(image, at, axis=1), f"corner_{k}_pixels")
                dots.append(op.ReduceSum(op.Mul(pixels, grad_y), [0], keepdims=1))
    pixels = op.Slice(grad_image, [0], [-1], [1])
    batch_and_spatial = op.Concat(dims(op, x, 0, 1), dims(op, x, 2, plan.rank), axis=0)
    grad_x = _to_images(op, pixels, dims(op, x, 1, 2), batch_and_spatial, plan.rank)
    if mode == "nearest":
        grad_grid = op.Expand(constant(op, 0.0, plan.dtype), op.Shape(grid))
    else:
        # A tap that is not read adds nothing, not even where grad_out is infinite.
        grad_grid = plan.grad_grid(op.Where(inside, op.Concat(*dots, axis=0), 0.0))
    return cast(op, grad_x, dtype_of(x, "x")), cast(op, grad_grid, dtype_of(grid, "grid"))


class _Backward:
    """What the two gradients have in common.

    The pixels of all images of the batch lie on one axis, and the P points of all grids on another.
    """

    def __init__(
        self,
        op: Builder,
        x: Value,
        grid: Value,
        mode: str,
        padding_mode: str,
        align_corners: bool | None,
        operator: str,
    ) -> None:
        check_grid_sample(known_shape(x, "x"), known_shape(grid, "grid"), mode, padding_mode, operator)
        self.rank = len(known_shape(x, "x"))
        self.dtype = compute_dtype(float_dtype_of(x, operator, "x"), float_dtype_of(grid, operator, "grid"))
        self.op = op = typed(op, self.dtype)
        self.x = cast(op, x, self.dtype)
        self.grid = grid
        self._align_corners = as_flag(align_corners, operator)
        self._how = (mode, padding_mode, self._align_corners, self.rank)
        axes = self.rank - 2
        self.corner_count = TAPS[mode] ** axes
        self.sizes: list[Value] = []
        self.pixels: list[Value] = []
        self.taps: list[interpolation.Taps] = []
        self._whole_sizes: list[Value] = []
        planes = coordinate_planes(op, grid, self.dtype)
        for axis, letter in enumerate("zyx"[3 - axes :]):
            with scope(op, letter):
                whole = dims(op, x, 2 + axis, 3 + axis)
                size = named(op.Cast(whole, to=int(self.dtype)), f"{letter}_size")
                normalized = named(op.Unsqueeze(planes[axis], [0]), f"{letter}_normalized")
                pixel = named(unnormalize(op, normalized, size, self._align_corners), f"{letter}_pixel")
                tap = _named_taps(interpolation.taps(op, pixel, size, *self._how), letter)
            self._whole_sizes.append(whole)
            self.sizes.append(size)
            self.pixels.append(pixel)
            self.taps.append(tap)
        self.weight: Value | None = None
        if mode != "nearest":
            self.weight = named(interpolation.corners(op, self.weights(), mode), "corner_weights")

    def weights(self) -> list[Value]:
        """Weights (T, P) along each axis; none for nearest."""
        return [tap.weight for tap in self.taps if tap.weight is not None]

    def corner(self, k: int, index: Value) -> tuple[Value, Value | None]:
        """Columns (P,) that corner `k` reads, and its weights (P,); None where all are 1."""
        at = named(self.op.Gather(index, k, axis=0), f"corner_{k}_index")
        if self.weight is None:
            return at, None
        return at, named(self.op.Gather(self.weight, k, axis=0), f"corner_{k}_weight")

    def table(self) -> Value:
        """Pixels of the batch, (C, N*H*W + 1); the last one is zero and stands for all that is not read."""
        pixels = _to_channels(self.op, self.x, self.rank)
        return named(self.op.Pad(pixels, [0, 0, 0, 1]), "pixels")

    def read(self) -> tuple[Value, Value]:
        """Columns (K, P) of `table` that the points read, and whether these are pixels of the image."""
        op = self.op
        size = count(op, dims(op, self.x, 2, self.rank))
        batch = dims(op, self.x, 0, 1)
        per_image = count(op, dims(op, self.grid, 1, self.rank - 1))
        point = op.Range(0, op.Squeeze(op.Mul(batch, per_image)), 1)
        offset = named(op.Mul(op.Div(point, op.Max(per_image, ints(op, [1]))), size), "first_pixel")
        index, inside = interpolation.flat_index(op, self.taps, self._whole_sizes, offset, self._how[0])
        read = op.Where(named(inside, "corners_inside"), index, op.Mul(size, batch))
        return named(read, "corner_indices"), inside

    def grad_grid(self, dots: Value) -> Value:
        """Gradient with respect to the grid, from grad_out times each pixel that was read, (K, P)."""
        op = self.op
        planes = []
        for axis, (size, letter) in enumerate(zip(self.sizes, "zyx"[5 - self.rank :], strict=True)):
            factors = self.weights()
            slope = interpolation.slopes(op, self.pixels[axis], size, *self._how, self.dtype)
            factors[axis] = named(slope, f"{letter}_slope")
            products = op.Mul(interpolation.corners(op, factors, self._how[0]), dots)
            along = op.ReduceSum(products, [0], keepdims=1)
            planes.append(op.Mul(along, unnormalize_slope(op, size, self._align_corners)))
        points = op.Transpose(op.Concat(*planes[::-1], axis=0), perm=[1, 0])
        return reshape(op, points, op.Shape(self.grid))


def _named_taps(tap: interpolation.Taps, letter: str) -> interpolation.Taps:
    named(tap.index, f"{letter}_index")
    named(tap.inside, f"{letter}_inside")
    if tap.weight is not None:
        named(tap.weight, f"{letter}_weight")
    return tap


def _to_channels(op: Builder, images: Value, rank: int) -> Value:
    """(N, C, …) as (C, N*…)."""
    moved = op.Transpose(images, perm=[1, 0, *range(2, rank)])
    return reshape(op, moved, dims(op, moved, 0, 1), count(op, dims(op, moved, 1, rank)))


def _to_images(op: Builder, channels: Value, count: Value, batch_and_spatial: Value, rank: int) -> Value:
    """Inverse of `_to_channels`, for `count` channels."""
    moved = reshape(op, channels, count, batch_and_spatial)
    return op.Transpose(moved, perm=[1, 0, *range(2, rank)])
