# Every target makes the virtual environment itself on a fresh machine; only python3 (3.11 or later) is needed.

PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
JOBS ?= 2
FUZZ_GRAPHS ?= 2000
PROGRAMS ?= 1000
BACKEND ?= interpret
# Read by pytest-timeout, which GPU hosts need not have.
export PYTEST_TIMEOUT ?= 300

# Tests fill the cores; threads of BLAS would wait for each other, spinning.
lit unit: export OPENBLAS_NUM_THREADS ?= 1

# $(call timed,NAME,COMMAND) runs a stage and says how long it took. pytest's own last line does so for the unit stage.
timed = start=$$(date +%s); $(2) && echo "stage $(1): $$(($$(date +%s) - start)) s"

# Modules are compiled once and not by each of hundreds of processes, whatever the environment says.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-full types lint lit unit fuzz fuzz-graphs gpu-test docs clean

demo: $(STAMP) ## compile and run the README's LayerNorm, on the GPU where there is one
	@extra=$$($(BIN)/python -c 'from mlirfuse.support.installation import cuda_extra as e, driver_cuda_version as v; print(e(v()) or "")') && \
	  if [ -n "$$extra" ] && ! $(BIN)/python -c 'import cupy' 2>/dev/null; then \
	    echo "An NVIDIA driver: installing mlirfuse[$$extra]" && \
	    $(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[$$extra]"; \
	  fi
	$(BIN)/mlirfuse demo

test: $(STAMP) ## all that needs no GPU: lint, types, lit, pytest
	@$(call timed,lint,$(BIN)/ruff check . && $(BIN)/ruff format --check .)
	$(MAKE) --no-print-directory -j $(JOBS) --output-sync=target types lit
	$(MAKE) --no-print-directory unit

test-full: ## the same with all combinations of parameters, of which `make test` takes a pairwise sample
	MLIRFUSE_TEST_FULL=1 $(MAKE) --no-print-directory test

types: $(STAMP) ## mypy
	@$(call timed,types,$(BIN)/mypy)

lint: $(STAMP) ## ruff and mypy, fixing what can be fixed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/mypy

lit: $(STAMP) ## IR tests
	@$(call timed,lit,$(BIN)/lit -j $(JOBS) -v test/lit)

unit: $(STAMP) ## pytest, without a GPU
	$(BIN)/pytest -q -n $(JOBS) --dist worksteal -m "not gpu"

fuzz: $(STAMP) ## PROGRAMS random programs on BACKEND (interpret, levels, ptx, assembled, crowded, gpu) from SEED or a new one, printed; failures are made small
	$(BIN)/python -m tests.fuzzing --backend $(BACKEND) --programs $(PROGRAMS) $(if $(SEED),--seed $(SEED)) --jobs $(JOBS) --shrink

fuzz-graphs: $(STAMP) ## the tests of one kind of function each, such as transposes and schedules of products, over FUZZ_GRAPHS of them
	MLIRFUSE_FUZZ_GRAPHS=$(FUZZ_GRAPHS) $(BIN)/pytest -q -n $(JOBS) -m "not gpu" -k fuzz --ignore=tests/interpreter/programs/test_fuzz.py --ignore=tests/unit/project/test_fuzzing.py --timeout=0 --hypothesis-show-statistics

gpu-test: $(STAMP) ## tests that launch kernels; install an extra first: pip install -e '.[test,cuda13]'
	$(BIN)/pytest -q -m gpu

docs: $(STAMP) ## write docs/passes.md and docs/dialect.md from the docstrings
	$(BIN)/python -m mlirfuse.tools.docs

clean: ## remove the environment and all caches
	rm -rf .venv build dist *.egg-info .pytest_cache .ruff_cache .mypy_cache .hypothesis test/lit/Output
	find mlirfuse tests test -name __pycache__ -prune -exec rm -rf {} +

$(STAMP): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(call timed,install,$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test]')
	touch $@
