"""The cases of all families."""

from gradient.tables import (
    activations,
    arithmetic,
    convolution,
    functions,
    indexing,
    losses,
    normalization,
    pooling,
    products,
    reductions,
    resize,
    scans,
    shaping,
    slicing,
    softmax,
)

CASES = [
    *arithmetic.CASES,
    *products.CASES,
    *reductions.CASES,
    *normalization.CASES,
    *functions.CASES,
    *activations.CASES,
    *softmax.CASES,
    *losses.CASES,
    *convolution.CASES,
    *pooling.CASES,
    *slicing.CASES,
    *shaping.CASES,
    *indexing.CASES,
    *scans.CASES,
    *resize.CASES,
]
