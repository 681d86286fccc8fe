# `make demo` and `make test` do all the set-up they need, into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OLDEST := .venv-oldest
SANITIZED := .venv-sanitize

.PHONY: demo test test-all attack fuzz fuzz-sanitize test-oldest test-browser sanitize lint \
  bench bench-peers bench-default clean

# Python sources are used in place; a change of the native core or of the settings reinstalls.
SOURCES := pyproject.toml CMakeLists.txt $(wildcard cpp/*)

$(BIN)/python $(OLDEST)/bin/python $(SANITIZED)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "tcboost needs Python 3.11 or later; set PYTHON=..."; exit 1; }
	$(PYTHON) -m venv $(@D)/..
	$@ -m pip install --quiet --upgrade pip

$(VENV)/demo.stamp: $(SOURCES) | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e '.[plot]'
	@touch $@

$(VENV)/test.stamp: $(SOURCES) | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e '.[test]'
	@touch $@ $(VENV)/demo.stamp

# The lower bounds of the run-time dependencies, as pins.
$(OLDEST)/test.stamp: $(SOURCES) | $(OLDEST)/bin/python
	$(PYTHON) -c 'import tomllib; project = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
	  print(*project["dependencies"], sep="\n")' | sed 's/>=/==/' > $(OLDEST)/pins.txt
	$(OLDEST)/bin/python -m pip install --quiet -c $(OLDEST)/pins.txt -e '.[test]'
	@touch $@

$(SANITIZED)/test.stamp: $(SOURCES) | $(SANITIZED)/bin/python
	$(SANITIZED)/bin/python -m pip install --quiet -e '.[test]' \
	  -C cmake.define.TCBOOST_SANITIZE=ON -C cmake.build-type=None
	@touch $@

$(VENV)/peers.stamp: $(SOURCES) | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e '.[peers]'
	@touch $@

$(VENV)/old.stamp: benchmarks/old.py | $(VENV)/peers.stamp
	$(BIN)/python benchmarks/old.py
	@touch $@

demo: $(VENV)/demo.stamp
	$(BIN)/python examples/demo.py

# A test on each core at a time: half as long on two.
PYTEST := -m pytest -n auto --maxprocesses 8 --dist worksteal

test: $(VENV)/test.stamp
	$(BIN)/python $(PYTEST)

test-all: $(VENV)/test.stamp
	$(BIN)/python $(PYTEST) -m ''

# Random fits, of numbers FROM and on: 500 of them are tests, of which `make test` has 20.
FITS := 500
FROM := 0
attack: $(VENV)/test.stamp
	TCBOOST_ATTACK_FROM=$(FROM) TCBOOST_ATTACK_FITS=$(FITS) \
	$(BIN)/python $(PYTEST) -m '' tests/test_attack.py

# Model files with random faults, FILES of them, in some hours. A run that was stopped goes on
# where it was; what fails is kept in build/fuzz.
FILES := 1000000
fuzz: $(VENV)/test.stamp
	$(BIN)/python tests/fuzz_files.py --files $(FILES)

# Old versions meet newer ones here, so their warnings are no errors. Needs Python 3.11 or 3.12.
test-oldest: $(OLDEST)/test.stamp
	$(OLDEST)/bin/python $(PYTEST) -W default

# The report in headless Chromium, from Debian's packages; without them the tests are skipped.
test-browser: $(VENV)/test.stamp
	@command -v chromium chromedriver > /dev/null \
	  || apt-get install --yes --no-install-recommends chromium chromium-driver \
	  || echo "NOT TESTED in a browser: install chromium and chromedriver, as root"
	$(BIN)/python -m pip install --quiet selenium
	$(BIN)/python -m pytest tests/paper/test_browser.py

# The native core under AddressSanitizer and UBSan (g++), by the tests of all that calls it. Both
# end the process at the first fault. Leaks are not looked for: Python itself keeps memory to the
# end. Its own allocator is off, since it hides where an array ends; pytest lets reports through.
SANITIZE_TESTS = tests/rows tests/oracles tests/correctors tests/model tests/test_boosting.py \
  tests/test_weights.py tests/test_threads.py tests/test_attack.py \
  $(wildcard $(shell grep -l '_core import' src/tcboost/*.py | sed 's|src/tcboost/|tests/test_|'))
UNDER_SANITIZERS = LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) \
	$$($(CXX) -print-file-name=libstdc++.so)" \
	ASAN_OPTIONS=detect_leaks=0:halt_on_error=1 \
	UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
	PYTHONMALLOC=malloc OPENBLAS_NUM_THREADS=1 $(SANITIZED)/bin/python
sanitize: $(SANITIZED)/test.stamp
	$(UNDER_SANITIZERS) -m pytest --capture=sys $(SANITIZE_TESTS)

fuzz-sanitize: $(SANITIZED)/test.stamp
	$(UNDER_SANITIZERS) tests/fuzz_files.py --files $(FILES) --folder build/fuzz-sanitize

lint: $(VENV)/test.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Writes benchmarks/RESULTS.md, where the data are at hand (TCBOOST_DATA, TCBOOST_MASTERS). Some of
# it: make bench BENCH='--only startup memory'; smaller: BENCH=--quick.
BENCH :=
bench: $(VENV)/test.stamp $(VENV)/peers.stamp
	$(BIN)/python benchmarks/run.py $(BENCH)

# Hours, where the data are at hand (TCBOOST_DATA); a stopped run goes on where it was.
bench-peers: $(VENV)/peers.stamp
	$(BIN)/python benchmarks/certificate.py
	$(BIN)/python benchmarks/family.py
	$(BIN)/python benchmarks/error_per_stump.py
	$(BIN)/python benchmarks/ebm.py

# The default against an older build and peers; the older build needs the whole history.
bench-default: $(VENV)/peers.stamp $(VENV)/old.stamp
	$(BIN)/python benchmarks/default.py $(BENCH)

clean:
	rm -rf $(VENV) $(OLDEST) $(SANITIZED) build dist
