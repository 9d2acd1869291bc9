# Sixteen commands, on a machine with python3, its venv module and make:
#
#   make demo     ask the benchmark; sets up .venv with what queries need
#   make test     every check, the same here and in CI; sets up .venv-test with everything (Python 3.11 or newer)
#   make release  from data/TASK/runs to jahs/releases/TASK; searches settings anew, unless EVALUATIONS=0
#   make figures  measures the top of the release and renders its card: data/TASK/figures.json, docs/releases/TASK (minutes)
#   make studies  every study of experiments/ with all its seeds, and their pages in docs/studies (hours: STUDIES=joint)
#   make landscape  what the searched space looks like: docs/studies/landscape (minutes: TASK=fashion_mnist_mini)
#   make science    released models beside papers' figures, landscapes and zoo: docs/studies (half an hour: SCIENCE=optimum)
#   make proxies    what zero-cost proxies know: docs/studies/proxies (minutes)
#   make noise      one training of a config or the surrogate, as in NAS-Bench-301: docs/studies/noise
#   make zoo        which family of models answers best: docs/studies/zoo (a quarter of an hour)
#   make docs     the site of the documentation: build/site/index.html; sets up .venv-docs (Python 3.11 or newer)
#   make datasheet   describes the recorded data: docs/data, checksums, Croissant, counts and cost (a minute)
#   make pages    all of figures, suite, studies, science, proxies, noise and datasheet, after a new release (hours)
#   make dist     the packages to publish, checked in empty environments: dist
#   make attack   the hostile files of tests/adversarial with ever more seeds, for MINUTES=30
#   make test-adapters   every adapter with its tool; sets up .venv-adapters, an environment for each (Python 3.11)
#
# Another interpreter: make test PYTHON=python3.12. Set-up is done again only when the pins, pyproject.toml, the
# version, the interpreter or the place of the checkout have changed: a stamp in the environment carries their digest.

PYTHON ?= python3
JOBS ?= 2
TEST_PROCESSES ?= 3
TASK ?= cifar10_mini
EVALUATIONS ?= 20
DISTILLED ?= 80000
FAMILIES ?= lightgbm
RATES ?= 16
MINUTES ?= 30
SCIENCE ?= hyperparameters optimum cells repeats encodings bootstrap parameter_free landscape tasks freeze_thaw schedules zoo
TASKS := fashion_mnist_mini cifar10_mini
# Neither is in this repository: CIFAR-10 of JAHS-Bench-201, imported by `jahs import`, and NAS-Bench-201's accuracies.
LANDSCAPE ?=
CELLS ?=
# Arms of the study baselines that also ran on CIFAR-10 of JAHS-Bench-201: they run once more without noise.
CONTROL := random_search local_search regularized_evolution evolution reinforce successive_halving hyperband asha
STUDIES ?= joint fidelity multiobjective baselines strong truth families long workers

# Results are measured on one core, and test processes must not fight over two. There is one more of them than cores, because
# many tests wait for processes that they start.
export OMP_NUM_THREADS = 1

# Tests start hundreds of processes, and without cached bytecode each would compile every module anew.
unexport PYTHONDONTWRITEBYTECODE

CORE_PINS := .ci/constraints-core.txt
TEST_PINS := .ci/constraints-core.txt .ci/constraints-workshops.txt
DOCS_PINS := $(TEST_PINS) .ci/constraints-docs.txt
STUDIES_PINS := .ci/constraints-adapters-optuna.txt .ci/constraints-adapters-smac.txt .ci/constraints-studies.txt
digest = $(shell { cat pyproject.toml $(1); grep __version__ jahs/__init__.py; pwd; $(PYTHON) -VV; } 2>&1 | cksum | tr ' ' '-')

TEST_EXTRAS := fast,plot,workshops,zoo,dev
DOCS_EXTRAS := fast,docs

DEMO := .venv
TEST := .venv-test
DOCS := .venv-docs
DEMO_READY := $(DEMO)/.ready-$(call digest,$(CORE_PINS))
TEST_READY := $(TEST)/.ready-$(call digest,$(TEST_PINS))
DOCS_READY := $(DOCS)/.ready-$(call digest,$(DOCS_PINS))

.PHONY: help demo test types types-3.10 types-3.14 imports test-adapters docs datasheet dist attack release figures \
    suite studies landscape science proxies noise zoo pages format clean

help:
	@sed -n 's/^#  *\(make .*\)/\1/p' Makefile

demo: $(DEMO_READY)
	@$(DEMO)/bin/jahs demo

# Checks of types and imports take one core each, so they run beside one another.
test: $(TEST_READY)
	$(TEST)/bin/ruff format --check .
	$(TEST)/bin/ruff check .
	@$(MAKE) --no-print-directory --jobs $(JOBS) --output-sync types types-3.10 types-3.14 imports
	$(TEST)/bin/python -m pytest --numprocesses $(TEST_PROCESSES) --dist worksteal

types: $(TEST_READY)
	$(TEST)/bin/mypy

types-3.10: $(TEST_READY)
	$(TEST)/bin/mypy --python-version 3.10 --package jahs

types-3.14: $(TEST_READY)
	$(TEST)/bin/mypy --python-version 3.14

imports: $(TEST_READY)
	$(TEST)/bin/lint-imports

release: $(TEST_READY)
	$(TEST)/bin/python -m surrogate.renew data/$(TASK)/runs --split data/$(TASK)/split.json \
	    --recorded data/$(TASK)/search --searches build/searches --out jahs/releases/$(TASK) \
	    --card docs/releases/$(TASK) --evaluations $(EVALUATIONS) --distilled $(DISTILLED) \
	    --rates $(RATES) --families $(FAMILIES) --workers $(JOBS)
	$(TEST)/bin/python docs/describe_data.py

figures: $(TEST_READY)
	$(TEST)/bin/python -m surrogate.figures data/$(TASK)/runs --split data/$(TASK)/split.json \
	    --release jahs/releases/$(TASK) --out data/$(TASK)/figures.json
	$(TEST)/bin/python -m surrogate.card jahs/releases/$(TASK) --figures data/$(TASK)/figures.json --out docs/releases/$(TASK)

# Its files follow from data/ and the embedded releases: to be made again after every change of these.
datasheet: $(TEST_READY)
	@$(if $(LANDSCAPE),set -e; for task in $(TASKS); do $(TEST)/bin/python -m pipeline.pilot --runs data/$$task/runs \
	    --landscape $(LANDSCAPE) $(if $(CELLS),--cells $(CELLS)) --save; done)
	@set -e; for task in $(TASKS); do $(TEST)/bin/python -m pipeline.describe data/$$task/runs --out docs/data; done
	@$(TEST)/bin/python docs/describe_data.py

# In this order: the suite opens the release, studies run on it, and pages of science read the packs of studies and the
# page of noise.
pages: $(TEST_READY)
	@for each in figures suite studies noise science proxies datasheet; do $(MAKE) --no-print-directory $$each || exit 1; done

suite: $(TEST_READY)
	@$(TEST)/bin/python -m experiments.suite --out jahs/seasons/suites --page docs/studies/suite --workers $(JOBS)

# A study's logs are of the embedded releases, so others have a folder of their own; finished runs are not run again.
# With LANDSCAPE, studies also run there, but for the arms that need a reference config or a measured latency. Where a study
# ran on the real landscape, which has no training noise, its order without noise stands beside it.
# The leaderboard comes last: it reads the packs of the whole season, of which two studies have no board.
studies: $(TEST_READY)
	@$(TEST)/bin/python -m pip install -qq --no-deps $(STUDIES_PINS:%=-r %)
	@set -e; packed() { $(TEST)/bin/python -m experiments.pack "$$@" | sed -n 's/.*"pack": "\(.*\)".*/\1/p'; }; \
	run() { $(TEST)/bin/python -m experiments.run $$study --workers $(JOBS) "$$@"; }; \
	on_landscape() { run --release $(LANDSCAPE) --noise mean --out $$logs-real "$$@"; packed $$logs-real --out data/studies; }; \
	for study in $(STUDIES); do \
	    logs=build/studies/$$(cat jahs/releases/*/manifest.json | cksum | cut -d' ' -f1)/$$study; \
	    run --out $$logs; \
	    pack=$$(packed $$logs --out data/studies); \
	    test -z "$(LANDSCAPE)" || case $$study in \
	        truth | families) ;; \
	        baselines) on_landscape --seeds 30 $(CONTROL:%=--arms %);; \
	        joint) on_landscape --arms '*-jahs' --arms '*-nas_*' --arms '*-hpo_[!r]*' --arms '*-hpo_random' --arms '*-hpo_resnet';; \
	        multiobjective) on_landscape --arms '*-latency' --arms '*-n-params' --arms '*-full-size-*';; \
	        *) on_landscape;; \
	    esac; \
	    real=data/studies/cifar10-JAHS-Bench-201/$$study; more=; \
	    if [ -d $$real ] && [ $$study = baselines ]; then \
	        run --noise mean --seeds 20 $(CONTROL:%=--arms %) --out $$logs-means; \
	        more="--control $$(packed $$logs-means --out data/studies/means)"; \
	    fi; \
	    $(TEST)/bin/python -m experiments.report $$pack --docs --out docs/studies/$$study --ship jahs/seasons \
	        $$(test ! -d $$real || echo --real $$real $(LANDSCAPE:%=--landscape %)) $$more \
	        $$(find data -path "data/*/retrained-$$study.json" -printf "--retrained %p\n" | sort); \
	done; \
	$(if $(filter-out truth families,$(STUDIES)),$(TEST)/bin/python -m experiments.leaderboard $$(dirname $$pack) \
	    --data data --docs --out docs/studies/leaderboard)

landscape: $(TEST_READY)
	@$(TEST)/bin/python -m experiments.landscape --task $(TASK) --docs --out docs/studies/landscape/$(TASK)

# Each study takes one core; the page of papers' figures reads the others.
science: $(TEST_READY)
	@$(TEST)/bin/python -m pip install -qq --no-deps $(STUDIES_PINS:%=-r %)
	@$(MAKE) --no-print-directory --jobs $(JOBS) --output-sync $(SCIENCE:%=science-%)
	@$(TEST)/bin/python -m experiments.science papers --docs --out docs/studies/papers

science-landscape: $(TASKS:%=science-landscape-%) ;

science-landscape-%: $(TEST_READY)
	@$(MAKE) --no-print-directory landscape TASK=$*

science-zoo: zoo ;

science-freeze_thaw: $(TEST_READY)
	@$(TEST)/bin/python -m experiments.freeze_thaw --docs --out docs/studies/freeze_thaw

science-schedules: $(TEST_READY)
	@$(TEST)/bin/python -m experiments.schedules --docs --out docs/studies/schedules

science-tasks: $(TEST_READY)
	@$(TEST)/bin/python -m experiments.tasks $(TASKS:%=data/%/runs) $(LANDSCAPE:%=--landscape %) --out docs/studies/tasks

science-%: $(TEST_READY)
	@$(TEST)/bin/python -m experiments.science $* --data data --docs --out docs/studies/$*

proxies: $(TEST_READY)
	@$(TEST)/bin/python -m experiments.proxies --docs --out docs/studies/proxies

noise: $(TEST_READY)
	@$(TEST)/bin/python -m surrogate.noise_study data/$(TASK)/runs --split data/$(TASK)/split.json \
	    --params data/$(TASK)/search/params.json --release jahs/releases/$(TASK) --out docs/studies/noise

# Families that a task's file has for the same data are not fitted again.
zoo: $(TEST_READY)
	@set -e; for task in $(TASKS); do \
	    $(TEST)/bin/python -m surrogate.zoo data/$$task/runs --split data/$$task/split.json --searches build/zoo/$$task \
	        --out data/$$task/zoo.json; \
	done
	@$(TEST)/bin/python -m experiments.zoo --docs --out docs/studies/zoo

# Warnings are errors, among them links and anchors that lead nowhere; a notebook that raises ends the build.
docs: $(DOCS_READY)
	@rm -rf build/site
	$(DOCS)/bin/python -m sphinx --quiet --fail-on-warning --keep-going --jobs $(JOBS) --conf-dir docs \
	    --doctree-dir build/site-doctrees --fresh-env . build/site
	$(DOCS)/bin/python -m pytest .ci/test_site.py .ci/test_data.py

# The time of the commit is that of every file, so the same commit gives the same bytes. The wheel is built from the sdist.
dist: export SOURCE_DATE_EPOCH = $(shell git log -1 --format=%ct)
dist: $(TEST_READY)
	@rm -rf dist
	@.ci/fetch_python || true
	@$(call install,$(CORE_PINS)) $(TEST)/bin/python -m build --outdir dist .
	$(TEST)/bin/python -m pytest .ci/test_wheel.py
	@cd dist && sha256sum jahs-* | tee SHA256SUMS

attack: $(TEST_READY)
	JAHS_ATTACK_MINUTES=$(MINUTES) $(TEST)/bin/python -m pytest tests/adversarial --timeout=0 --numprocesses $(JOBS)

test-adapters: $(TEST_READY)
	@PYTHON=$(PYTHON) .ci/test_adapters

format: $(TEST_READY)
	$(TEST)/bin/ruff format .
	$(TEST)/bin/ruff check --fix .

clean:
	rm -rf $(DEMO) $(TEST) $(DOCS) .venv-adapters build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

# Each fault is one line that says what to do. Argument: the oldest minor version of Python 3 that will do.
define check_python
@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) is not here: install it (Debian: apt-get install python3 python3-venv)" >&2; exit 1; }
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, $(1)))' || { echo "$(@D) needs Python 3.$(1) or newer, and $(PYTHON) is $$($(PYTHON) -V 2>&1): name another, as in make PYTHON=python3.12" >&2; exit 1; }
@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "$(PYTHON) lacks its venv module: install it (Debian: apt-get install python3-venv)" >&2; exit 1; }
endef

# The pins hold for what builds the package, too (newer versions of pip read them from the second variable).
install = PIP_CONSTRAINT="$(1)" PIP_BUILD_CONSTRAINT="$(1)" PIP_DISABLE_PIP_VERSION_CHECK=1

# Arguments: folder, oldest minor version of Python 3, pins, extras, what is said meanwhile.
define set_up
$(call check_python,$(2))
@echo "setting up $(1) $(5)" >&2
@$(PYTHON) -m venv $(1)
@$(call install,$(3)) $(1)/bin/python -m pip install -qq --editable '.[$(4)]'
@rm -f $(1)/.ready-* && touch $@
endef

$(DEMO_READY):
	$(call set_up,$(DEMO),10,$(CORE_PINS),fast,for queries once)

$(TEST_READY):
	$(call set_up,$(TEST),11,$(TEST_PINS),$(TEST_EXTRAS),with everything once: some minutes and 2 GB or more)

$(DOCS_READY):
	$(call set_up,$(DOCS),11,$(DOCS_PINS),$(DOCS_EXTRAS),for the documentation once)
