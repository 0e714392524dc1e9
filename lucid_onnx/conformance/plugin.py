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
    from lucid_onnx.conformance.pool import Worker

_WORKER = pytest.StashKey["Worker"]()

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


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test for each case, marked where a divergence is known."""
    if "lucid_case" not in metafunc.fixturenames:
        return
    option = metafunc.config.getoption
    if option("--lucid-runtime") is None and option("--lucid-command") is None:
        metafunc.parametrize("lucid_case", [pytest.param(None, marks=pytest.mark.skip(reason=_NO_RUNTIME))])
        return
    from lucid_onnx.conformance.known import known_to
    from lucid_onnx.conformance.suite import cases
    from lucid_onnx.reference.schema import LucidError

    try:
        worker = _worker(metafunc.config)
        known = known_to(worker.runtime, worker.version, worker.provider, option("--lucid-known"))
        parameters = []
        for case in cases(option("--lucid-select"), option("--lucid-max-examples")):
            divergence = known.find(case)
            marks = [] if divergence is None else [pytest.mark.xfail(reason=divergence.reason, strict=False)]
            parameters.append(pytest.param(case, id=case.id, marks=marks))
    except LucidError as error:
        raise pytest.UsageError(str(error)) from None
    metafunc.parametrize("lucid_case", parameters)


@pytest.fixture
def lucid_worker(request: pytest.FixtureRequest) -> Worker:
    """The child process with the runtime in it."""
    return _worker(request.config)


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


def _worker(config: pytest.Config) -> Worker:
    """The one child process of this run."""
    if _WORKER not in config.stash:
        from lucid_onnx.conformance.pool import Worker
        from lucid_onnx.conformance.running import job_for

        job = job_for(
            config.getoption("--lucid-runtime") or "command",
            config.getoption("--lucid-provider"),
            options=dict(text.partition("=")[::2] for text in config.getoption("--lucid-option") or []),
            command=config.getoption("--lucid-command") or "",
            repeat=config.getoption("--lucid-repeat"),
        )
        config.stash[_WORKER] = Worker(job, config.getoption("--lucid-time-limit"))
    return config.stash[_WORKER]
