"""Tests an installed exactdp from outside the tree: light import, the command line, packaged data.

Usage: python smoke.py REPOSITORY   (run in a folder that is not in the repository)
"""

from __future__ import annotations

import importlib.metadata
import json
import pkgutil
import shutil
import subprocess
import sys
from pathlib import Path

HEAVY = ("jax", "matplotlib", "torch", "tensorflow", "dp_accounting", "prv_accountant")
COMMAND = (
    "epsilon gaussian --noise_multiplier 1 --sampling_probability 0.01 --num_steps 1000 --delta 1e-5 --json"
)
# By independent quadrature to 40 digits: sampled Gaussian, add/remove, hidden coins.
TRUTH = 1.828236667
# Processor seconds: a clock would measure the other users of the machine. NumPy and SciPy, which all need,
# are timed apart.
IMPORT = f"""
import sys, time
start = time.process_time()
import exactdp.accounting
package = time.process_time() - start
import numpy, scipy.special
base = time.process_time()
from exactdp.accounting import fdp, prv, rdp
print(package, time.process_time() - base, *[name for name in {HEAVY} if name in sys.modules])
"""


def require(holds: bool, message: str) -> None:
    """Exits with `message` unless `holds`."""
    if not holds:
        sys.exit(f"smoke: {message}")


def is_outside(root: Path) -> None:
    """The package is the installed one."""
    import exactdp

    place = Path(exactdp.__file__).resolve()
    require(root not in place.parents, f"exactdp was imported from the tree: {place}")
    version = importlib.metadata.version("exactdp")
    require(version == exactdp.__version__, f"version {version} of the wheel is not {exactdp.__version__}")
    require((place.parent / "py.typed").is_file(), "py.typed is not installed")


def imports_light() -> None:
    """`exactdp.accounting` and its accountants load in half a second and pull in nothing heavy."""
    command = [sys.executable, "-W", "error", "-c", IMPORT]
    outputs = [
        subprocess.run(command, check=True, capture_output=True, text=True).stdout.split() for _ in range(3)
    ]
    package, accountants = (min(float(words[index]) for words in outputs) for index in (0, 1))
    require(package < 0.5, f"importing exactdp.accounting took {package:.2f} s")
    require(accountants < 0.5, f"importing the accountants took {accountants:.2f} s beyond SciPy's own")
    require(len(outputs[0]) == 2, f"importing the accountants also imported {outputs[0][2:]}")
    print(
        f"import exactdp.accounting: {package:.3f} s; its accountants: {accountants:.3f} s beyond SciPy's own"
    )


def imports_all() -> None:
    """Every accounting module is importable from the wheel, save the bridges to optional libraries."""
    import exactdp.accounting

    names = [
        found.name
        for found in pkgutil.walk_packages(exactdp.accounting.__path__, "exactdp.accounting.")
        if ".bridges" not in found.name
    ]
    for name in names:
        __import__(name)
    require(len(names) > 20, f"the wheel holds only {len(names)} accounting modules")
    print(f"{len(names)} accounting modules import")


def command_line() -> None:
    """The console script answers one query with one JSON object that brackets the truth."""
    script = shutil.which("exactdp")
    require(script is not None, "the console script exactdp is not installed")
    done = subprocess.run([str(script), *COMMAND.split()], capture_output=True, text=True)
    require(done.returncode == 0, f"exactdp exited with {done.returncode}: {done.stderr}")
    answer = json.loads(done.stdout)
    require({"epsilon", "delta", "threat_model", "seconds"} <= answer.keys(), f"keys are {sorted(answer)}")
    lower, upper = answer["epsilon"]["lower"], answer["epsilon"]["upper"]
    require(lower - 1e-9 <= TRUTH <= upper + 1e-9, f"[{lower}, {upper}] misses {TRUTH}")
    require(upper - lower <= 1e-6, f"[{lower}, {upper}] is wider than 1e-6")
    require(answer["delta"] == 1e-5, f"delta came back as {answer['delta']}")
    require(answer["threat_model"]["coins"] == "hidden", f"threat model is {answer['threat_model']}")
    bad = subprocess.run([str(script), *COMMAND.replace("1e-5", "2").split()], capture_output=True, text=True)
    require(bad.returncode != 0, "a delta of 2 was accepted")
    require("delta" in bad.stderr and "Traceback" not in bad.stderr, f"the error reads: {bad.stderr}")
    require(bad.stdout == "", f"an error printed on stdout: {bad.stdout}")
    print(f"exactdp {COMMAND}\n  [{lower}, {upper}] holds {TRUTH}")


if __name__ == "__main__":
    is_outside(Path(sys.argv[1]).resolve())
    imports_light()
    imports_all()
    command_line()
    print("smoke: the installed package works")
