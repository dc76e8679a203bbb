# The course's commands: `make help` lists them.
# Kept to GNU make 3.81 (what macOS ships) and a plain POSIX shell.

COURSE := dot-product-to-gpt2
FIRST  := 01_dot_product_attention

# To give on the command line, where a target asks for it: LESSON=NN_topic, NAME=NN_topic, FROM=FILE, ARGS="...",
# JOBS=N for tests side by side, and PYTHON=/path/to/python3.12 to choose the Python that .venv is made with.
LESSON :=
NAME   :=
FROM   :=
ANSWER :=
URL    :=
TO     :=
TITLE  :=
SAYS   :=
ARGS   :=
PYTHON :=
JOBS   :=

# Needs are met in the order in which they stand, also under -j: what asks or refuses comes before a set-up of minutes.
.NOTPARALLEL:

# A full checkout holds the solutions; a student's copy does not, and needs fewer packages.
FULL   := $(wildcard solutions tests)
comma  := ,
EXTRAS := $(if $(FULL),[author$(comma)cluster$(comma)grading$(comma)site$(comma)test])

# An active conda environment of the course is used as it is; otherwise the environment is .venv.
ifneq (,$(CONDA_PREFIX))
  CONDA := $(filter $(COURSE),$(notdir $(CONDA_PREFIX)))
  CONDA += $(wildcard $(CONDA_PREFIX)/lib/python3*/site-packages/dot_product_to_gpt2-*.dist-info)
endif
ifneq (,$(strip $(CONDA)))
  PREFIX := $(CONDA_PREFIX)
  BIN    := $(PREFIX)/bin
else
  PREFIX := .venv
  BIN    := $(CURDIR)/.venv/bin
endif
PY := $(PREFIX)/bin/python

ANY_PYTHON = $(if $(wildcard $(BIN)/python),"$(BIN)/python",python3)

# The environment is ready when it holds a stamp named after what was installed, and from where.
KEY   := $(shell { cat pyproject.toml constraints.txt; pwd; echo '$(EXTRAS)'; } | cksum | tr ' ' -)
STAMP := $(PREFIX)/.course-env-$(KEY)

# A Python that has gone (moved, or upgraded away) takes the stamp with it.
$(shell test -x $(PY) || rm -f "$(PREFIX)"/.course-env-*)

# Packages in a user's own site-packages or kernels of the same name must not shadow the environment's.
export PYTHONNOUSERSITE := 1
export JUPYTER_PREFER_ENV_PATH := 1

.PHONY: help env lab panels data update test test-deep quick lint site build check read mutants new-lesson release students-repository home exam-key gradescope name-mistake \
        assignment demo-class collect grade bench bench-grading look accept refuse feedback report export \
        restore-gradebook lock clean distclean .full .lesson .lesson-if-named .lab-lesson .panels-lesson .name .from .to .answer

# A student's copy lists what works there: not what needs a full checkout, .full, and not its tests.
help: ## List these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## /$(if $(FULL),, && !/^test:|: \.full/) { printf "make %-20s %s\n", $$1, $$2 }' Makefile

##### The environment

env: $(STAMP) ## Set up the environment: .venv, or the course's active conda environment

ifneq (,$(strip $(CONDA)))
$(PY):
	@echo "The active conda environment holds no Python: conda env update -f environment.yml"; exit 1
endif

# One Python out of those that fit: the one called python3 if it does, else the newest.
PYTHONS = python3 python3.13 python3.12 python3.11 python3.14 python
FITS    = import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))

.venv/bin/python:
	@found=; seen=; \
	for candidate in $(if $(PYTHON),"$(PYTHON)",$(PYTHONS)); do \
	    "$$candidate" -c '$(FITS)' >/dev/null 2>&1 && { found=$$candidate; break; }; \
	    version=`"$$candidate" --version 2>&1` && seen="$$seen $$candidate is $$version."; \
	done; \
	if [ -z "$$found" ]; then \
	    echo "The course needs Python 3.11 to 3.14, and found none.$$seen"; \
	    echo "Install one, or name it: make $(or $(firstword $(MAKECMDGOALS)),env) PYTHON=/path/to/python3.12"; \
	    exit 1; \
	fi; \
	echo "Making .venv with `"$$found" --version` ($$found)"; \
	rm -rf .venv; \
	"$$found" -m venv .venv || { \
	    rm -rf .venv; \
	    echo; \
	    echo "$$found cannot make virtual environments. On Debian and Ubuntu:"; \
	    echo "    sudo apt install python3-venv"; \
	    echo "and then make again."; \
	    exit 1; \
	}

# An interrupted set-up leaves no stamp, and the next call goes on where it stopped.
$(STAMP): $(PY)
	@echo "Installing the course's packages into $(PREFIX): some minutes, once"
	@rm -f "$(PREFIX)"/.course-env-*
	@$(PY) -m pip --version >/dev/null 2>&1 || $(PY) -m ensurepip
	@$(PY) -m pip install -c constraints.txt -e '.$(EXTRAS)' || { \
	    echo; \
	    echo "The packages could not be installed; pip says why above. If it could not connect, look at the"; \
	    echo "network, or set PIP_INDEX_URL to the package index of your school; then make again."; \
	    exit 1; \
	}
	@touch "$@"

##### Students

lab: .lab-lesson env ## Open JupyterLab at the start page, or at LESSON=NN_topic (ARGS="..." go to JupyterLab)
	@exec $(PY) -m helpers lab $(LESSON) -- $(ARGS)

panels: .panels-lesson env ## Print what each check of a lesson will say in an exam: LESSON=NN_topic
	@$(PY) -m helpers panels $(LESSON)

# ./data stands aside from the code: `make clean` and `make distclean` leave it, for it can be half a gigabyte.
data: env ## Fetch the real data and GPT-2 for use offline, into $COURSE_DATA or ./data (ARGS="imdb ...": those only)
	@$(PY) -m helpers.data $(ARGS)

# Needs no environment: an old or a broken one must not stand in the way of a newer release.
update: ## Take a newer release, and keep every answer: FROM=new.zip, or none in a git checkout
	@$(ANY_PYTHON) -m helpers.update $(if $(FROM),"$(FROM)")

##### Instructors and authors

# Side by side in as many processes as there are cores (JOBS=N: in so many, JOBS=0: in this one), each with one thread.
# Where the time goes is said at the end, and for each test in build/tests/. Trainings in lessons end after 20 steps.
PYTEST = OMP_NUM_THREADS=1 COURSE_TRAINING_STEPS=20 $(PY) -m pytest -n $(or $(JOBS),logical) --maxprocesses 8 --dist loadfile --no-loadscope-reorder \
         --durations=15 --junit-xml=build/tests/$@.xml
LESSONS_AS_SOLVED = --nbval-lax --nbval-current-env --nbval-sanitize-with tests/nbval.cfg

quick: .full env lint ## Run what a change is likeliest to break: lint, and the tests that are not slow
	$(PYTEST) -m "not slow and not deep" tests $(ARGS)

test: $(if $(FULL),env) ## Run the tests, and each solved lesson: all but what looks for the rare
ifeq (,$(FULL))
	@echo "This copy holds the lessons only. Their tests are in the course's repository."
else
	@test -d solutions || { echo "solutions/ is missing: no lesson can be tested."; exit 1; }
	$(PYTEST) -m "not deep" $(LESSONS_AS_SOLVED) tests solutions $(ARGS)
endif

test-deep: .full env ## Run the tests that look for the rare: more seeds, mutants, every attack
	$(PYTEST) -m deep tests $(ARGS)

lint: .full env ## Say what ruff finds in style and form, and mypy in types (see pyproject.toml)
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(PY) -m helpers.authoring.inspect.typing_baseline

site: .full env ## Render the lessons for readers, into site/_build
	$(PY) -m helpers.site

build: .full .lesson-if-named env ## Rebuild all that is generated (LESSON=, or all; ARGS=--prose where no code has changed)
	$(PY) -m helpers.authoring build $(LESSON) $(ARGS)

check: .full .lesson-if-named env ## Say whether anything is stale, leaks, or lacks mistakes (LESSON=, or all)
	$(PY) -m helpers.authoring check $(LESSON) $(ARGS)

read: .full .lesson-if-named env ## Say how long a lesson takes, and what in its prose to write otherwise (LESSON=)
	$(PY) -m helpers.authoring read $(LESSON)

mutants: .full env ## Judge small changes of a lesson's solution: LESSON=NN_topic, or all
	$(PY) -m helpers.authoring mutants $(LESSON)

new-lesson: .full .name env ## Start a lesson from the template: NAME=NN_topic
	$(PY) -m helpers.authoring new $(NAME)

release: .full env ## Make the students' zip, into dist/ (ARGS=--with-solutions: not for a class that is graded)
	$(PY) -m helpers.authoring release $(ARGS)

students-repository: .full .to env ## Commit the release into the repository that hubs pull from: TO=../students
	$(PY) -m helpers.authoring students-repository "$(TO)"

home: .full env ## Say where the course is published: URL=https://github.com/you/your-course (or URL= for nowhere)
	$(PY) -m helpers.authoring home "$(URL)"

exam-key: .full .lesson env ## Make an exam's answer key: LESSON=NN_topic
	$(PY) -m helpers.authoring exam-key $(LESSON) $(ARGS)

gradescope: .full .lesson env ## Make a lesson's autograder for Gradescope, a zip in dist/: LESSON=NN_topic
	@$(PY) -m helpers.authoring gradescope $(LESSON) $(ARGS)

name-mistake: .full .lesson .answer env ## Name a wrong answer of the report: LESSON= ANSWER=3f2a91c0 NAME= TITLE= SAYS=
	@$(PY) -m helpers.authoring name-mistake $(LESSON) "$(ANSWER)" --name "$(NAME)" --title "$$TITLE" --says "$$SAYS" $(ARGS)

assignment: .full .lesson env ## Make the students' notebook: LESSON=NN_topic
	$(PY) -m nbgrader generate_assignment $(LESSON) --force

demo-class: .full .lesson env ## Make thirty submissions to try grading on: LESSON=NN_topic
	$(PY) -m helpers.authoring demo-class $(LESSON) $(ARGS)

collect: .full .lesson .from env ## Copy a zip from Canvas or Moodle into submitted/: LESSON=NN_topic FROM=class.zip
	$(PY) -m helpers.grading collect $(LESSON) "$(FROM)"

grade: .full .lesson env ## Mark what is in submitted/: LESSON=NN_topic (ARGS="--only STUDENT --again --dry-run ...")
	$(PY) -m helpers.grading grade $(LESSON) $(ARGS)

restore-gradebook: .full env ## List the gradebook's backups, or bring one back (ARGS=latest, or its name)
	$(PY) -m helpers.grading restore-gradebook $(ARGS)

bench: .full env ## Measure the finished parts against other libraries, as ratios (ARGS="--quick --only lessons|translator|groups|sparse|checkpointing|drafting|gpt2")
	$(PY) -m helpers.benchmarks.parts_speed $(ARGS)

bench-grading: .full .lesson-if-named env ## Measure grading a class beside nbgrader (LESSON=, ARGS="--submissions N --nbgrader N")
	$(PY) -m helpers.benchmarks grading-speed $(LESSON) $(ARGS)

look: .full .lesson env ## List the answers that wait for you, with the cells that they wait for: LESSON=NN_topic
	$(PY) -m helpers.grading look $(LESSON)

accept: .full .lesson env ## Pay an answer that waited: LESSON=NN_topic ARGS="STUDENT EXERCISE"
	$(PY) -m helpers.grading accept $(LESSON) $(ARGS)

refuse: .full .lesson env ## Pay nothing for an answer that waited: LESSON=NN_topic ARGS="STUDENT EXERCISE"
	$(PY) -m helpers.grading refuse $(LESSON) $(ARGS)

feedback: .full .lesson env ## Write each student's feedback page: LESSON=NN_topic
	$(PY) -m helpers.grading feedback $(LESSON) $(ARGS)

report: .full .lesson-if-named env ## Write the instructor's pages, report/ (LESSON=, or the course so far)
	$(PY) -m helpers.grading report $(LESSON) $(ARGS)

export: .full .lesson-if-named env ## Write marks for nbgrader, Canvas and Moodle into export/ (LESSON= for one lesson)
	$(PY) -m helpers.grading export $(LESSON)

# Before the environment, not after it: old pins and a new declaration may not go together.
lock: .full $(PY) ## Pin the dependencies anew in constraints.txt (ARGS=--upgrade takes the newest)
# One version of each package for every Python and platform, so that the conditions can go. torch pins its
# own CUDA libraries, and names of builds (+cpu) belong to one machine.
	@$(PY) -m uv --version >/dev/null 2>&1 || $(PY) -m pip install uv
	@cp constraints.txt constraints.tmp
	@$(PY) -m uv pip compile --no-config --quiet --universal --fork-strategy fewest --python-version 3.11 --all-extras \
	    --no-annotate --no-header $(ARGS) pyproject.toml --output-file constraints.tmp
	@{ sed '/^[^#]/,$$d' constraints.txt; \
	   sed -E -e "/^(cuda|nvidia|triton)|== 'emscripten'/d" -e 's/[ +;].*//' constraints.tmp; } > constraints.new
	@rm constraints.tmp
	@mv constraints.new constraints.txt

clean: ## Remove what commands left behind; environments, marks and exam keys stay
	rm -rf build dist site/_build .pytest_cache *.egg-info
	find . \( -name .venv -o -name submitted \) -prune -o \( -name __pycache__ -o -name .ipynb_checkpoints \) -prune -exec rm -rf {} +

distclean: clean ## clean, and remove .venv
	rm -rf .venv

# These come first among a target's needs, so that nobody waits for a set-up before reading them.
.full:
	@test -n "$(FULL)" || { echo "make $(MAKECMDGOALS) is for the course's repository, not a student's copy."; exit 1; }

NO_SUCH = { echo "There is no lesson called $(1). The lessons:"; ls $(2); exit 1; }

.lesson:
	@test -n "$(LESSON)" || { echo "Say which lesson: make $(MAKECMDGOALS) LESSON=$(FIRST)"; exit 1; }
	@test -d "solutions/$(LESSON)" || $(call NO_SUCH,$(LESSON),solutions)

.lesson-if-named:
	@test -z "$(LESSON)" || test -d "solutions/$(LESSON)" || $(call NO_SUCH,$(LESSON),solutions)

.lab-lesson:
	@test -z "$(LESSON)" || test -f "notebooks/$(LESSON)/$(LESSON).ipynb" || $(call NO_SUCH,$(LESSON),notebooks)

.panels-lesson: .lab-lesson
	@test -n "$(LESSON)" || { echo "Say which lesson: make panels LESSON=$(FIRST)"; exit 1; }

.from:
	@test -n "$(FROM)" || { echo "Say where the submissions are: make collect LESSON=$(LESSON) FROM=class.zip"; exit 1; }
	@test -e "$(FROM)" || { echo "There is no file $(FROM)."; exit 1; }

.to:
	@test -n "$(TO)" || { echo "Say where that repository is, or is to be: make students-repository TO=../students"; exit 1; }

# Sentences hold apostrophes: they go by the environment, past the shell's quotes.
export TITLE SAYS
.answer:
	@test -n "$(ANSWER)" && test -n "$(NAME)" && test -n "$$TITLE" && test -n "$$SAYS" || { \
	    echo "Say which answer, and what to call it, as the report does:"; \
	    echo "    make name-mistake LESSON=$(LESSON) ANSWER=3f2a91c0 NAME=no-scale TITLE=\"not divided by √d\" SAYS=\"...\""; \
	    exit 1; }

.name:
	@test -n "$(NAME)" || { echo "Name the lesson: make new-lesson NAME=17_topic"; exit 1; }
