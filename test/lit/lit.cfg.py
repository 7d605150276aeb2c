"""Configuration of the IR tests: `lit test/lit`, or `lit test/lit/passes/gpu/verify.mlir` for one of them."""

import os
import shutil
import sys
import sysconfig
from pathlib import Path

import lit.formats
import llvm

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "test" / "lit"))
import tool_server  # noqa: E402

LLVM_BIN = Path(next(iter(llvm.__path__))) / "bin"

config.name = "mlirfuse"
config.test_format = lit.formats.ShTest()
config.suffixes = [".mlir", ".py", ".test"]
config.excludes = ["lit.cfg.py", "tool_server.py", "Inputs"]
config.test_source_root = str(Path(__file__).parent)
config.test_exec_root = str(Path(__file__).parent / "Output")

# The interpreter that runs lit is the one that has mlirfuse, so tests need no activated environment.
config.environment["PYTHONPATH"] = str(ROOT)
config.environment["PYTHONWARNINGS"] = "error"
for variable in ("HOME", "CUDA_HOME", "CUDA_PATH"):
    if variable in os.environ:
        config.environment[variable] = os.environ[variable]

config.substitutions += [
    # The longer name first: substitutions are tried in order.
    (
        r"\bmlirfuse-opt\b",
        f"{sys.executable} -ISE {ROOT}/test/lit/tool_server.py {tool_server.start(dict(config.environment))}",
    ),
    (r"(?<![\w/.-])mlirfuse(?=\s)", f"{sys.executable} -m mlirfuse.tools.cli"),
    (r"%python\b", sys.executable),
    *((rf"(?<![\w/.-]){tool}(?=\s)", str(LLVM_BIN / tool)) for tool in ("FileCheck", "not", "count", "split-file")),
]

ptxas_paths = [*Path(sysconfig.get_paths()["purelib"]).glob("nvidia/*/bin/ptxas"), shutil.which("ptxas")]
ptxas = next((str(path) for path in ptxas_paths if path), None)
if ptxas:
    config.available_features.add("ptxas")
    config.substitutions.append((r"(?<![\w/.-])ptxas(?=\s)", ptxas))
