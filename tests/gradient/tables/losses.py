"""Losses of labels, with every reduction, with weights and with labels that are ignored."""

import torch
from gradient.checking import Case
from torch.nn import functional

SCORES = {"": [4, 3], "_places": [2, 3, 5], "_image": [2, 3, 2, 2]}
REDUCTIONS = ("none", "sum", "mean")
WEIGHTS = [0.5, 1.25, 2.0]


def nll_loss(x, labels, w, reduction, ignore_index):
    """functional.nll_loss, whose weights have a gradient here."""
    kept = labels != ignore_index
    index = torch.where(kept, labels, 0)
    weight = torch.where(kept, w[index], 0.0)
    loss = -weight * x.gather(1, index.unsqueeze(1)).squeeze(1)
    return {"none": lambda: loss, "sum": loss.sum, "mean": lambda: loss.sum() / weight.sum()}[reduction]()


def cross_entropy(x, labels, w, **options):
    """functional.cross_entropy, likewise."""
    return nll_loss(torch.log_softmax(x, 1), labels, w, **options)


def _labels(shape, ignored):
    """Some of each class, and one that is ignored."""
    labels = torch.arange(torch.Size(shape).numel()) * 2 % 3
    if ignored is not None:
        labels[1] = ignored
    return labels.reshape(shape).numpy()


def _case(name, operator, loss, shape="", reduction="mean", ignored=None, weights=False, integer="int64", **options):
    """A case of a loss, and where the name says so of the logarithms of probabilities as well."""
    scores = SCORES[shape]
    labels = [scores[0], *scores[2:]]
    both = "log_prob" in name
    attributes = f'reduction = "{reduction}"' + ("" if ignored is None else f", ignore_index = {ignored}")
    text = (
        f"(T{scores} x, {integer}{labels} t{', T[3] w' if weights else ''})"
        f" => (T{labels if reduction == 'none' else ''} y{f', T{scores} p' if both else ''})"
        f" {{ y{', p' if both else ''} = {operator}<{attributes}>(x, t{', w' if weights else ''}) }}"
    )

    def twin(x, labels, w=None):
        index = -100 if ignored is None else ignored
        y = loss(x, labels.long(), w, reduction=reduction, ignore_index=index)
        return (y, torch.log_softmax(x, 1)) if both else y

    feed = {"t": _labels(labels, ignored), "w": WEIGHTS}
    return Case(name, text, twin, **{"feed": feed, "wrt": ("x",), **options})


def _cases(name, operator, loss, with_weights):
    return [
        *(
            _case(f"{name}_{reduction}{shape}", operator, loss, shape, reduction, half=reduction == "none")
            for reduction in REDUCTIONS
            for shape in SCORES
        ),
        *(
            _case(f"{name}_{reduction}_ignore_{ignored}", operator, loss, "_places", reduction, ignored, weights=True)
            for reduction in REDUCTIONS
            for ignored in (-100, -1, 1)
        ),
        *(
            _case(f"{name}_{reduction}_of_weights", operator, with_weights, "_places", reduction, 1, True, wrt=None)
            for reduction in REDUCTIONS
        ),
        _case(f"{name}_of_weights_alone", operator, with_weights, weights=True, wrt=("w",)),
        _case(f"{name}_int32", operator, loss, ignored=0, integer="int32", opset=16),
        _case(f"{name}_weights_sum", operator, loss, reduction="sum", weights=True, half=True),
        _case(f"{name}_all_ignored", operator, loss, ignored=-1, feed={"t": [-1, -1, -1, -1]}, differences=False),
    ]


CASES = [
    *_cases("negativeloglikelihoodloss", "NegativeLogLikelihoodLoss", functional.nll_loss, nll_loss),
    *_cases("softmaxcrossentropyloss", "SoftmaxCrossEntropyLoss", functional.cross_entropy, cross_entropy),
    *(
        _case(
            f"softmaxcrossentropyloss_{reduction}_log_prob{shape}",
            "SoftmaxCrossEntropyLoss",
            cross_entropy,
            shape,
            reduction,
            1,
            weights=True,
            wrt=None,
        )
        for reduction in REDUCTIONS
        for shape in SCORES
    ),
    Case(
        "softmaxcrossentropyloss_log_prob_alone",
        "(T[4,3] x, int64[4] t) => (T[4,3] z) { y, p = SoftmaxCrossEntropyLoss(x, t)  z = Exp(p) }",
        lambda x, t: torch.softmax(x, 1),
        feed={"t": [0, 2, 1, 1]},
    ),
    Case(
        "negativeloglikelihoodloss_default",
        "(T[2,3] x, int64[2] t) => (T y) { y = NegativeLogLikelihoodLoss(x, t) }",
        functional.nll_loss,
        feed={"t": [0, 2]},
    ),
]
