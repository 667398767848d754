# `make train` and `make test` need python3 (3.11 or later), pip and make; each makes .venv on its first call.
PYTHON ?= python3
ARGS ?= experiment=demo
# LOCK=.ci/lock.txt installs the versions behind the committed results and checks their hashes.
LOCK ?=
# uv checks hashes also of what a package needs, and only if it needs it; pip would want all of the lock, a GPU's part too.
UV := uv==0.13.9
# Test processes, each with one thread: one a core.
JOBS ?= auto
BIN := .venv/bin

.PHONY: train test thorough lint smoke faults fuzz bench pages clean

train: .venv/stamp
	$(BIN)/python src/train.py $(ARGS)

test: .venv/stamp
	OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE $(BIN)/pytest -n $(JOBS) --dist worksteal $(TESTS)

# What takes long and shows what a quicker test shows already: further cases, all pages' commands.
thorough: .venv/stamp
	OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE $(BIN)/pytest -n $(JOBS) --dist worksteal -m thorough $(TESTS)

lint: .venv/stamp
	$(BIN)/ruff check src tests
	$(BIN)/ruff format --check src tests
	$(BIN)/mypy

smoke: .venv/stamp
	$(BIN)/python src/train.py -m sweeps=smoke_all_cells
	$(BIN)/python src/train.py -m sweeps=smoke_relu_cells

# The whole of tests/faults, about 20 minutes on two free cores: FAULTS cases of each kind, then damaged files for so many
# seconds. Another SEED puts the faults elsewhere.
FAULTS ?= 20
SEED ?= 0
SECONDS ?= 180

faults: .venv/stamp fuzz
	HORNN_FAULTS=$(FAULTS) HORNN_FAULTS_SEED=$(SEED) $(BIN)/pytest -m faults tests/faults

fuzz: .venv/stamp
	PYTHONPATH=tests $(BIN)/python -m faults.fuzz --seconds $(SECONDS) --seed $(SEED)

bench: .venv/stamp
	$(BIN)/python src/bench.py $(BENCH)

# Everything generated that is committed: the pages beside the results, the blocks in README.md and docs/.
pages: .venv/stamp
	$(BIN)/python src/report.py --write
	$(BIN)/python src/bench.py --write
	$(BIN)/python src/parameters.py --write

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/stamp: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "hornn needs Python 3.11 or later, this is " + sys.version)'
	$(PYTHON) -m venv .venv
ifdef LOCK
	$(BIN)/pip install --quiet $(UV)
	UV_FIND_LINKS="$${UV_FIND_LINKS-$$PIP_FIND_LINKS}" $(BIN)/uv pip install --quiet --compile-bytecode --constraints $(LOCK) --editable '.[dev]'
else
	$(BIN)/pip install --quiet --editable '.[dev]'
endif
	touch $@
