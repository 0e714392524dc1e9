"""The suite as tests of pytest, for a runtime's own continuous integration.

``pytest --lucid-runtime onnxruntime --lucid-provider CUDAExecutionProvider --pyargs lucid_onnx.conformance`` runs each
case as a test. A known divergence is an expected failure. pytest loads this module whatever it is to test, so what
it needs is imported when it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from lucid_onnx.conformance.case import Case
    from lucid_onnx.conformance.known import Divergence
    from lucid_onnx.conformance.pool import Worker

_WORKER = pytest.StashKey["Worker"]()
_CASES = pytest.StashKey["list[tuple[Case, Divergence | None]]"]()

_NO_RUNTIME = "name a runtime to run the conformance suite on: --lucid-runtime onnxruntime"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of the suite, which say what those of ``lucid-onnx conformance`` do."""
    group = parser.getgroup("lucid-onnx", "conformance suite of lucid-onnx")
    group.addoption("--lucid-runtime", metavar="NAME", help="runtime to judge: onnxruntime, openvino, …")
    group.addoption(
        "--lucid-command", metavar="LINE", help="a runtime that is a program, with {model} {inputs} {outputs}"
    )
    group.addoption("--lucid-provider", action="append", metavar="NAME", help="execution provider; may be repeated")
    group.addoption("--lucid-option", action="append", metavar="NAME=VALUE", help="of the session; may be repeated")
    group.addoption("--lucid-select", metavar="EXPR", help="which cases")
    group.addoption("--lucid-max-examples", type=int, metavar="N", help="the most cases to run")
    group.addoption("--lucid-repeat", type=int, default=1, metavar="N", help="run each case N times, compare bytes")
    group.addoption("--lucid-time-limit", type=float, default=60, metavar="S", help="seconds for a case")
    group.addoption("--lucid-known", metavar="FILE.toml", help="known divergences of your own runtime")


def pytest_configure(config: pytest.Config) -> None:
    """Start the runtime, if one is named, and choose the cases, so that wrong use is told in a line."""
    option = config.getoption
    if option("--lucid-runtime") is None and option("--lucid-command") is None:
        return
    from lucid_onnx.conformance.known import known_to
    from lucid_onnx.conformance.suite import cases
    from lucid_onnx.reference.schema import LucidError

    try:
        chosen = cases(option("--lucid-select"), option("--lucid-max-examples"))
        worker = config.stash[_WORKER] = _start(config)
        known = known_to(worker.runtime, worker.version, worker.provider, option("--lucid-known"))
    except LucidError as error:
        raise pytest.UsageError(str(error)) from None
    config.stash[_CASES] = [(case, known.find(case)) for case in chosen]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test for each case, marked where a divergence is known."""
    if "lucid_case" not in metafunc.fixturenames:
        return
    chosen = metafunc.config.stash.get(_CASES, None)
    if chosen is None:
        parameters = [pytest.param(None, marks=pytest.mark.skip(reason=_NO_RUNTIME))]
    else:
        parameters = [pytest.param(case, id=case.id, marks=_marks(divergence)) for case, divergence in chosen]
    metafunc.parametrize("lucid_case", parameters)


def _marks(divergence: Divergence | None) -> list[pytest.MarkDecorator]:
    return [] if divergence is None else [pytest.mark.xfail(reason=divergence.reason, strict=False)]


@pytest.fixture
def lucid_worker(request: pytest.FixtureRequest) -> Worker:
    """The child process with the runtime in it."""
    return request.config.stash[_WORKER]


@pytest.fixture
def lucid_case(request: pytest.FixtureRequest) -> Case:
    """A case of the suite."""
    case: Case = request.param
    return case


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the child process."""
    worker = config.stash.get(_WORKER, None)
    if worker is not None:
        worker.close()


def _start(config: pytest.Config) -> Worker:
    """The one child process of this run."""
    from lucid_onnx.conformance.pool import Worker
    from lucid_onnx.conformance.running import job_for, options_of

    job = job_for(
        config.getoption("--lucid-runtime") or "command",
        config.getoption("--lucid-provider"),
        options=options_of(config.getoption("--lucid-option") or []),
        command=config.getoption("--lucid-command") or "",
        repeat=config.getoption("--lucid-repeat"),
    )
    return Worker(job, config.getoption("--lucid-time-limit"))
