"""One query to one library, in a process of its own: run by path, `python -P worker.py`.

Reads `{"library", "case", "tolerance"}` as JSON from stdin and prints one JSON object: `status` ("ok",
"not installed", "not supported" or "error"), the answer, seconds, import seconds and peak memory. Nothing is
warmed; the import is timed apart from the query, which includes building the mechanisms. Only the standard
library and the library asked for are imported, so any interpreter that has it can run this file.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
import json
import math
import sys
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

Case = dict[str, Any]
Answer = dict[str, Any]
"""`upper` (the value reported as a guarantee), `lower` and `estimate` where the library has them; lists
for a curve."""
Run = Callable[[Case, float | None], Answer]

EPS_ERROR = 0.01  # of the two accountants that take an error in epsilon
GRID = 1e-4  # of those that take a grid step; the default of each of them


class Unsupported(Exception):
    """The library offers no such mechanism or query."""


def _gaussians(case: Case) -> list[tuple[float, float, int]]:
    """(noise_multiplier, sampling_probability, count) of a case that has nothing else."""
    if any(m["family"] != "gaussian" for m in case["mechanisms"]):
        raise Unsupported("no Laplace mechanism")
    steps = case["mechanisms"]
    return [(m["noise_multiplier"], m.get("sampling_probability", 1.0), m["count"]) for m in steps]


def _one(case: Case) -> tuple[float, int]:
    """Sampling probability and count of the one mechanism that is calibrated."""
    ((_, q, count),) = _gaussians(case)
    return q, count


def _exactdp() -> Run:
    from exactdp.accounting import calibrate, prv
    from exactdp.accounting.pairs.gaussian import Gaussian
    from exactdp.accounting.pairs.laplace import Laplace
    from exactdp.accounting.sampling.hidden import PoissonHidden

    def build(case: Case) -> list[tuple[Any, int]]:
        composition: list[tuple[Any, int]] = []
        for m in case["mechanisms"]:
            family = Gaussian if m["family"] == "gaussian" else Laplace
            pair = family(m["noise_multiplier"])
            q = m.get("sampling_probability", 1.0)
            composition.append((PoissonHidden(pair, q) if q < 1.0 else pair, m["count"]))
        return composition

    def run(case: Case, tolerance: float | None) -> Answer:
        if case["query"] == "delta_curve":
            curve = prv.delta_curve(build(case), epsilons=case["epsilons"])
            lower, upper = [x.lower for x in curve], [x.upper for x in curve]
            return {"lower": lower, "upper": upper, "engine": curve[0].engine}
        if case["query"] == "noise_multiplier":
            q, count = _one(case)
            found = calibrate.noise_multiplier(
                lambda sigma: [(PoissonHidden(Gaussian(sigma), q), count)], epsilon=case["epsilon"],
                delta=case["delta"], tolerance=tolerance or 1e-7, limits=tuple(case["limits"]),
            )  # fmt: skip
            lower = found.value if found.rejected is None else found.rejected
            return {"lower": lower, "upper": found.value, "engine": found.epsilon.engine}
        interval = prv.epsilon(build(case), delta=case["delta"], tolerance=tolerance)
        return {"lower": interval.lower, "upper": interval.upper, "engine": interval.engine}

    return run


def _dp_accounting() -> Run:
    package = importlib.import_module("dp_accounting")
    pld = importlib.import_module("dp_accounting.pld.privacy_loss_distribution")
    accountant = importlib.import_module("dp_accounting.pld.pld_privacy_accountant")

    def build(case: Case) -> Any:
        total = None
        for m in case["mechanisms"]:
            q = m.get("sampling_probability", 1.0)
            options = {"value_discretization_interval": GRID, "sampling_prob": q}
            if m["family"] == "gaussian":
                part = pld.from_gaussian_mechanism(m["noise_multiplier"], **options)
            else:
                part = pld.from_laplace_mechanism(m["noise_multiplier"], **options)
            part = part.self_compose(m["count"]) if m["count"] > 1 else part
            total = part if total is None else total.compose(part)
        return total

    def run(case: Case, tolerance: float | None) -> Answer:
        del tolerance
        if case["query"] == "delta_curve":
            composed = build(case)
            return {"upper": [float(x) for x in composed.get_delta_for_epsilon(case["epsilons"])]}
        if case["query"] == "noise_multiplier":
            q, count = _one(case)
            found = package.calibrate_dp_mechanism(
                accountant.PLDAccountant,
                lambda sigma: package.SelfComposedDpEvent(
                    package.PoissonSampledDpEvent(q, package.GaussianDpEvent(sigma)), count
                ),
                case["epsilon"], case["delta"], package.ExplicitBracketInterval(*case["limits"]),
            )  # fmt: skip
            return {"upper": float(found)}
        return {"upper": float(build(case).get_epsilon_for_delta(case["delta"]))}

    return run


def _prv_accountant() -> Run:
    package = importlib.import_module("prv_accountant")
    variables = importlib.import_module("prv_accountant.privacy_random_variables")
    dpsgd = importlib.import_module("prv_accountant.dpsgd")

    def variable(m: dict[str, Any]) -> Any:
        q = m.get("sampling_probability", 1.0)
        if m["family"] == "laplace":
            return variables.LaplaceMechanism(mu=1.0 / m["noise_multiplier"])
        if q == 1.0:
            return variables.GaussianMechanism(noise_multiplier=m["noise_multiplier"])
        return variables.PoissonSubsampledGaussianMechanism(
            sampling_probability=q, noise_multiplier=m["noise_multiplier"]
        )

    def run(case: Case, tolerance: float | None) -> Answer:
        del tolerance
        if case["query"] == "noise_multiplier":
            q, count = _one(case)
            found = dpsgd.find_noise_multiplier(q, count, case["epsilon"], case["delta"], EPS_ERROR)
            return {"upper": float(found)}
        counts = [m["count"] for m in case["mechanisms"]]
        accountant = package.PRVAccountant(
            prvs=[variable(m) for m in case["mechanisms"]], max_self_compositions=counts,
            eps_error=EPS_ERROR, delta_error=case["delta"] / 1000,
        )  # fmt: skip
        if case["query"] == "delta_curve":
            # Composed once, not at every point as its compute_delta does.
            composed = accountant.compute_composition(counts)
            return _shifted(composed, case)
        low, estimate, high = accountant.compute_epsilon(delta=case["delta"], num_self_compositions=counts)
        return {"lower": low, "estimate": estimate, "upper": high}

    return run


def _shifted(composed: Any, case: Case) -> Answer:
    """The upper end of both PRV accountants: the estimate at epsilon less its error, plus that of delta."""
    error = case["delta"] / 1000
    upper = [composed.compute_delta_estimate(e - EPS_ERROR) + error for e in case["epsilons"]]
    return {"upper": [float(x) for x in upper]}


def _opacus() -> Run:
    package = importlib.import_module("opacus.accountants")
    utils = importlib.import_module("opacus.accountants.utils")

    def run(case: Case, tolerance: float | None) -> Answer:
        del tolerance
        accountant = package.PRVAccountant()
        accountant.history = [(s, q, n) for s, q, n in _gaussians(case)]
        if case["query"] == "delta_curve":
            return _shifted(accountant._get_dprv(eps_error=EPS_ERROR, delta_error=case["delta"] / 1000), case)
        if case["query"] == "noise_multiplier":
            q, count = _one(case)
            found = utils.get_noise_multiplier(
                target_epsilon=case["epsilon"], target_delta=case["delta"], sample_rate=q, steps=count,
                accountant="prv",
            )  # fmt: skip
            return {"upper": float(found)}
        return {"upper": float(accountant.get_epsilon(delta=case["delta"], eps_error=EPS_ERROR))}

    return run


def _opake() -> Run:
    # The Rust extension itself: the Python classes around it add time and do not import on every 3.11.
    folder = Path(str(metadata.distribution("opake-accounting").locate_file("opake/api/accounting/core")))
    place = next(folder.glob("opake_accounting*.so"), None) or next(folder.glob("opake_accounting*.pyd"))
    spec = importlib.util.spec_from_file_location("opake_accounting", place)
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError("opake_accounting")
    native: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(native)
    config = native.DiscretizationConfig(discretization=GRID)

    def build(steps: list[tuple[float, float, int]]) -> Any:
        total = None
        for sigma, q, count in steps:
            part = native.gaussian_pld(sigma, config)
            part = native.poisson_pld(part, q) if q < 1.0 else part
            part = part.self_compose(count) if count > 1 else part
            total = part if total is None else total.compose(part)
        return total

    def run(case: Case, tolerance: float | None) -> Answer:
        del tolerance
        if case["query"] == "delta_curve":
            composed = build(_gaussians(case))
            return {"upper": [composed.delta_at(e) for e in case["epsilons"]]}
        if case["query"] == "noise_multiplier":  # the rule of its `calibrate`: bisection until within 1e-6
            q, count = _one(case)
            (low, high), target = case["limits"], case["epsilon"]
            reached = build([(high, q, count)]).epsilon_at(case["delta"])
            while not math.isclose(reached, target, rel_tol=1e-6):
                middle = 0.5 * (low + high)
                found = build([(middle, q, count)]).epsilon_at(case["delta"])
                low, high, reached = (low, middle, found) if found <= target else (middle, high, reached)
                if not low < 0.5 * (low + high) < high:
                    break
            return {"upper": high}
        return {"upper": build(_gaussians(case)).epsilon_at(case["delta"])}

    return run


def _riskcal() -> Run:
    package = importlib.import_module("riskcal.accountants")
    blackbox = importlib.import_module("riskcal.calibration.blackbox")

    def run(case: Case, tolerance: float | None) -> Answer:
        del tolerance
        accountant = package.CTDAccountant()
        accountant.history = _gaussians(case)
        if case["query"] == "delta_curve":
            return {"upper": [float(x) for x in accountant.get_pld().get_delta_for_epsilon(case["epsilons"])]}
        if case["query"] == "noise_multiplier":
            q, count = _one(case)
            low, high = case["limits"]
            found = blackbox.find_noise_multiplier_for_epsilon_delta(
                package.CTDAccountant, q, count, case["epsilon"], case["delta"], mu_min=low, mu_max=high
            )
            return {"upper": float(found)}
        return {"upper": float(accountant.get_epsilon(delta=case["delta"]))}

    return run


def _autodp() -> Run:
    mechanisms = importlib.import_module("autodp.mechanism_zoo")
    transformers = importlib.import_module("autodp.transformer_zoo")

    def run(case: Case, tolerance: float | None) -> Answer:
        # Its analytical Fourier accountant; both neighbourings, each composed apart.
        del tolerance
        if case["query"] == "noise_multiplier":
            raise Unsupported("no calibration with the Fourier accountant")
        answers: list[Any] = []
        for neighbouring in ("add_only", "remove_only"):
            parts = []
            for m in case["mechanisms"]:
                name = "GaussianMechanism" if m["family"] == "gaussian" else "LaplaceMechanism"
                part = getattr(mechanisms, name)(m["noise_multiplier"], phi_off=False)
                if m.get("sampling_probability", 1.0) < 1.0:
                    part.neighboring = neighbouring
                    sampler = transformers.AmplificationBySampling_pld(neighboring=neighbouring)
                    part = sampler(part, m["sampling_probability"])
                parts.append(part)
            composed = transformers.ComposeAFA()(parts, [m["count"] for m in case["mechanisms"]])
            if case["query"] == "delta_curve":
                answers.append([float(composed.approx_delta(e)) for e in case["epsilons"]])
            else:
                answers.append(float(composed.approxDP(case["delta"])))
        if case["query"] == "delta_curve":
            return {"upper": [max(x) for x in zip(*answers, strict=True)]}
        return {"upper": max(answers)}

    return run


def _fourier_accountant() -> Run:
    package = importlib.import_module("fourier_accountant")
    numpy = importlib.import_module("numpy")

    def run(case: Case, tolerance: float | None) -> Answer:
        del tolerance
        sigma, q, count = (numpy.array(x) for x in zip(*_gaussians(case), strict=True))
        if case["query"] == "noise_multiplier":
            raise Unsupported("no calibration")
        if case["query"] == "delta_curve":
            return {"upper": [float(package.get_delta_R(e, sigma, q, count)) for e in case["epsilons"]]}
        return {"upper": float(package.get_epsilon_R(case["delta"], sigma, q, count))}

    return run


LIBRARIES: dict[str, tuple[str, Callable[[], Run]]] = {
    "exactdp": ("exactdp", _exactdp),
    "dp-accounting": ("dp-accounting", _dp_accounting),
    "prv-accountant": ("prv-accountant", _prv_accountant),
    "opacus": ("opacus", _opacus),
    "opake-accounting": ("opake-accounting", _opake),
    "riskcal": ("riskcal", _riskcal),
    "autodp": ("autodp", _autodp),
    "fourier-accountant": ("fourier-accountant", _fourier_accountant),
}
"""Name -> (name of the distribution, what imports it and returns the query)."""


def peak_mebibytes() -> float:
    """Peak resident memory of this process; not that of a parent, which `getrusage` keeps across exec."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak / 2**20 if sys.platform == "darwin" else peak / 2**10
    return int(status.split("VmHWM:")[1].split()[0]) / 2**10


def _version(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return str(getattr(sys.modules.get(distribution), "__version__", "unknown"))


def measure(library: str, case: Case, tolerance: float | None) -> dict[str, Any]:
    """Imports `library` and runs one query; never raises for what the library does."""
    distribution, load = LIBRARIES[library]
    report: dict[str, Any] = {"status": "ok", "note": ""}
    start = time.perf_counter()
    try:
        run = load()
    except (ModuleNotFoundError, metadata.PackageNotFoundError) as failure:
        return {"status": "not installed", "note": str(failure)}
    except Exception as failure:  # a broken installation is a result too
        return {"status": "error", "note": f"import: {type(failure).__name__}: {failure}"}
    report["import_seconds"] = time.perf_counter() - start
    report["version"] = _version(distribution)
    start, cpu = time.perf_counter(), time.process_time()
    try:
        report.update(run(case, tolerance))
    except Unsupported as reason:
        report.update(status="not supported", note=str(reason))
    except Exception as failure:
        report.update(status="error", note=f"{type(failure).__name__}: {failure}"[:200])
    report["cpu_seconds"], report["seconds"] = time.process_time() - cpu, time.perf_counter() - start
    report["peak_mib"] = peak_mebibytes()
    return report


def main() -> None:
    """Answers one request; what the library prints goes nowhere."""
    request = json.load(sys.stdin)
    with contextlib.redirect_stdout(io.StringIO()):
        report = measure(request["library"], request["case"], request["tolerance"])
    print(json.dumps(report))


if __name__ == "__main__":
    main()
