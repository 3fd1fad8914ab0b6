# Every target makes the virtual environment it needs, and refreshes it when pyproject.toml, setup.py or the kernel
# changed. Variables: PYTHON=interpreter; ARGS="arguments for pytest, the demo or the benchmark"; JVM_JARS=directory;
# CASES=of the benchmark, by name; WORKERS=processes that share the tests, each with a broker and a Spark session;
# SECONDS=to fuzz each target; KILLS=of drivers and of tasks, SEED=of their places, for the fault tests; MINUTES=of
# faults, SEED=of them, for the cluster in motion, and of the soak; CONTINUOUS=guarantee for KILLS of a continuous query
# instead; SPARK=version of PySpark for test-spark and test-interop; WING=part whose tests test and quick run;
# CONSTRAINTS=file with the versions to install, as in continuous integration.

VENV := .venv
comma := ,
ARGS :=
JVM_JARS :=
TAG :=
CASES :=
WORKERS := 4
SECONDS := 75
KILLS := 20
SEED := 1
MINUTES := 10
CONTINUOUS :=
SPARK :=
WING :=
# Also from the environment: workflows set it.
CONSTRAINTS ?=
# The parts of ARCHITECTURE.md, each with its folders of the package.
wing_client := _client/client records
wing_connector := _connector checkpoint _client/options
wing_typed := _typed
wing_engine := connector continuous toolkit
wing_operations := _ops
wing_testkit := testing
wings := client connector typed engine operations testkit
ifneq ($(filter-out $(wings),$(WING)),)
$(error WING is one of: $(wings))
endif
# The folders of kinds of tests that a part has.
wing_tests = $(wildcard $(foreach kind,$(1),$(addprefix tests/$(kind)/,$(wing_$(WING)))))
# Coverage for the fuzzer, where there is a wheel of it; elsewhere fuzzing goes without.
atheris := atheris>=3; sys_platform == "linux" and platform_machine == "x86_64" and python_version >= "3.11" and python_version < "3.15"
# One release, not 4.2.*: the JVM connector's jars are for that one only.
pyspark42_venv = $(prepare) .venv-pyspark42 --group test --with 'pyspark==4.2.0'
spark_venv = case '$(SPARK)' in 4.[0-9]) ;; *) echo 'make: set SPARK to a version such as 4.0' >&2; exit 2;; esac; \
	$(prepare) .venv-spark$(SPARK) --group test --with 'pyspark==$(SPARK).*'
interop_venv = $(if $(SPARK),.venv-spark$(SPARK),.venv-pyspark42)
# What differs between versions of PySpark shows here; tests/kit/fixtures/spark_versions.py has what fails.
spark_tests = tests/unit/_connector/spark tests/unit/continuous/reports tests/integration/continuous \
	$(addprefix tests/integration/_connector/,spark source table) $(addprefix tests/integration/_ops/,operations diagnosis lineage)
release_venv = $(prepare) .venv-release --group release --without-spark
# setuptools: run_asan.py builds the kernel outside of pip; as in [build-system].
fuzz_venv = $(prepare) .venv-fuzz --group test --with '$(atheris)' --with 'setuptools>=77'

# Looked up by the first target that needs it, not by `make help`.
prepare = python=$$(tools/find-python) && "$$python" tools/prepare_venv.py $(if $(CONSTRAINTS),--constraints '$(CONSTRAINTS)')
# Where a kernel can be compiled, tests of the compiled kernel must not be skipped.
with_kernel = if $(1)/bin/python tools/can_compile.py; then export PYSPARK_KAFKA_REQUIRE_COMPILED=1; fi;
before_tests = $(1)/bin/python tools/get_broker.py && $(1)/bin/python tools/archive_classes.py
# Idle workers steal tests, because durations vary widely.
pytest = { $(call with_kernel,$(1)) $(1)/bin/python -m pytest -n $(WORKERS) --dist worksteal $(2) $(ARGS); }
with_tables = $(call before_tests,$(1)) && $(1)/bin/python -m pytest -q -m tables tests/integration/guides/tables/test_$(2).py $(ARGS)
checks := types style imports commits
# Hundreds of processes that tests start import the package: the bytecode of the first is for all of them.
unexport PYTHONDONTWRITEBYTECODE
bench_venv = .venv-bench$(SPARK)
# The command of a recorded run, and the name of its record; a part of the tests has none.
export MADE_BY = make $@ $(MAKEOVERRIDES)
recorded = $(if $(ARGS),,export RECORDED_AS='$(1)';)
side_by_side = $(MAKE) --no-print-directory -j2

.PHONY: help help-all demo test quick test-all lint $(VENV) types style imports commits quick-wheel wheel ready format site site-versions test-site sdist wheels check-release release-dry-run first-row test-pyspark42 test-spark test-sail test-tables test-platforms test-interop test-yarn test-faults security-matrix test-chaos soak results audit constraints hooks smoke bench bench-typed bench-decoders bench-latency bench-arrow bench-start bench-scale bench-state bench-checkpoints bench-group fuzz fuzz-asan fuzz-corpus clean
.DEFAULT_GOAL := help
# A file that is half written is worse than none.
.DELETE_ON_ERROR:

# Targets with a mark, ##*, are those that a newcomer needs.
help:
	@awk -F ':.*##\\* ' '/^[a-z0-9-]+:.*##\* / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

help-all:  ##* Show all targets
	@awk -F ':.*##\\*? ' '/^[a-z0-9-]+:.*##\*? / { printf "  make %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo:  ##* Start a real Kafka, stream through Spark, show the result
	@$(prepare) $(VENV) --group demo
	@$(VENV)/bin/pyspark-kafka demo $(ARGS)

test: $(VENV)  ##* Run all checks and the tests of each promise, in a quarter of an hour, or of one part: WING=typed
	@$(side_by_side) $(checks) quick-wheel ready
	@$(call pytest,$(VENV),$(call wing_tests,unit property protocol contract integration))

quick: lint  ##* Run all checks and the tests that start nothing, in 3 minutes, or of one part: WING=typed
	@$(call pytest,$(VENV),$(if $(WING),$(call wing_tests,unit protocol),tests/unit tests/protocol tests/repo))

test-all: $(VENV)  ##* Run every test, also proofs in a second variant and more examples, in 45 minutes; before a release
	@$(side_by_side) $(checks) wheel ready
	@$(call recorded,tests) $(call pytest,$(VENV),-m 'not long and not kerberos and not site and not yarn and not tables' --hypothesis-profile=full)

lint: $(VENV)  ##* Run ruff, mypy, import-linter and the rules of commit messages
	@$(side_by_side) $(checks)

$(VENV):
	@$(prepare) $(VENV) --group dev

# The longest first: the others run beside it.
types:
	$(VENV)/bin/mypy

style:
	$(VENV)/bin/ruff check
	$(VENV)/bin/ruff format --check

imports:
	$(VENV)/bin/lint-imports

commits:
	$(VENV)/bin/python tools/check_commits.py

# Without the kernels, which the environment has compiled already.
quick-wheel:
	@PYSPARK_KAFKA_PURE_PYTHON=1 $(VENV)/bin/python tools/check_wheel.py

wheel:
	@$(VENV)/bin/python tools/check_wheel.py

# Collected once for its bytecode: each process that shares the tests would rewrite all asserts for itself.
ready:
	@$(call before_tests,$(VENV))
	@$(VENV)/bin/python -m pytest --collect-only -qq > /dev/null

format:  ##* Format the code and fix what can be fixed
	@$(prepare) $(VENV) --group dev
	$(VENV)/bin/ruff format
	$(VENV)/bin/ruff check --fix

site:  ##* Build the site of the documentation into build/site/html
	@$(prepare) .venv-site --group site
	@.venv-site/bin/python tools/build_site.py

site-versions:  ## Build the sites of main and of all releases into build/site/versions, as they are published
	@$(prepare) .venv-site --group site
	@.venv-site/bin/python tools/site_versions.py

test-site: site  ## Test the site in a browser; needs Chromium (Debian: chromium)
	@$(prepare) .venv-site --group site --group test
	@.venv-site/bin/python -m pytest -q -m site tests/site $(ARGS)

sdist:  ## Build the sdist and the pure-Python wheel into dist/
	@$(release_venv)
	@.venv-release/bin/python tools/build_wheels.py --pure

wheels:  ## Build into dist/ the sdist and all wheels that this machine can build, and check them
	@$(release_venv)
	@.venv-release/bin/python tools/build_wheels.py

check-release:  ## Compare TAG with the version and the changelog
	@$(release_venv)
	@.venv-release/bin/python tools/check_release.py $(TAG)

release-dry-run: check-release wheels  ## Do all of a release but publish; see RELEASING.md
	@.venv-release/bin/python tools/first_row.py --wheel dist/*-py3-none-any.whl README.md
	@.venv-release/bin/python tools/first_row.py README.md \
		--wheel dist/*-cp$$(.venv-release/bin/python -c 'import sys; print("%d%d" % sys.version_info[:2])')-*.whl

# `--strict` and frozen versions: what cannot be looked up is a failure, and no package is passed over silently.
audit:  ## Look for known vulnerabilities in all dependencies; needs a registry that tells them
	@$(prepare) .venv-audit --group test --group audit
	@.venv-audit/bin/python -m pip freeze --exclude-editable --quiet > .venv-audit/frozen.txt
	@.venv-audit/bin/pip-audit --strict --no-deps --disable-pip -r .venv-audit/frozen.txt || { \
		echo 'make audit: a package is vulnerable, or could not be looked up: see above. The PyPI JSON API must be' \
			'reachable; with a mirror that lacks it, nothing is known.' >&2; exit 1; }

# A fresh environment, because pip keeps the versions of an old one.
constraints:  ## Write the versions that PYTHON installs into tools/constraints/; for each Python of the test workflow
	@rm -rf .venv-constraints
	@python=$$(tools/find-python) && "$$python" tools/prepare_venv.py .venv-constraints --group dev
	@.venv-constraints/bin/python -m pip freeze --exclude-editable > tools/constraints/$$(.venv-constraints/bin/python -c \
		'import sys; print("%d.%d" % sys.version_info[:2])').txt

hooks:  ## Run the hooks of .pre-commit-config.yaml on all files; needs GitHub
	@python=$$(tools/find-python) && "$$python" -m venv .venv-hooks
	@.venv-hooks/bin/pip install --quiet 'pre-commit>=4,<5'
	@.venv-hooks/bin/pre-commit run --all-files

first-row:  ## Run the first lines of README and of the site's entry page, as printed, in empty environments; ARGS=--no-cache
	@python=$$(tools/find-python) && PYTHONPATH="$(CURDIR)/src" "$$python" tools/first_row.py $(ARGS)

smoke:  ## Install the pure wheel in an empty environment, show its help, decode record batches
	@python=$$(tools/find-python) && "$$python" tools/smoke.py

test-pyspark42:  ## Run the tests with PySpark 4.2
	@$(pyspark42_venv)
	@$(call before_tests,.venv-pyspark42)
	@$(call recorded,tests-pyspark-4.2) $(call pytest,.venv-pyspark42,-m 'not long and not kerberos and not site and not yarn and not tables')

test-spark:  ## Test sources, sinks and queries with another PySpark: SPARK=4.0, 4.1 or 4.2
	@$(spark_venv)
	@$(call before_tests,.venv-spark$(SPARK))
	@$(call recorded,tests-pyspark-$(SPARK)-connector) $(call pytest,.venv-spark$(SPARK),$(spark_tests))

test-sail:  ## Test batch reads and writes on Sail, a Spark Connect server without a JVM
	@$(prepare) .venv-sail --group test --with 'pyspark==4.1.*' --with 'pysail>=0.7.2,<0.8'
	@$(call before_tests,.venv-sail)
	@.venv-sail/bin/python -m pytest -q tests/integration/_connector/spark/test_sail.py $(ARGS)

test-tables:  ## Test writes into Delta Lake and Iceberg, with their jars and without, each on the PySpark that it is for
	@$(prepare) .venv-tables --group test --group tables
	@$(call with_tables,.venv-tables,without_jar)
	@$(prepare) .venv-spark4.2 --group test --with 'pyspark==4.2.*'
	@$(call with_tables,.venv-spark4.2,delta_jar)
	@$(prepare) .venv-spark4.1 --group test --with 'pyspark==4.1.*'
	@$(call with_tables,.venv-spark4.1,iceberg_jar)

test-platforms: $(VENV)  ## Install the wheel beside the packages of managed platforms; needs Python 3.11, 3.12 and 3.13
	@$(call before_tests,$(VENV))
	@$(VENV)/bin/python -m pytest -q -m long tests/integration/_connector/spark/test_platforms.py $(ARGS)

test-interop:  ## Test checkpoints shared with Spark's JVM connector; JVM_JARS=directory has its jars, for SPARK or 4.2.0
	@test -n '$(JVM_JARS)' || { echo 'make test-interop: set JVM_JARS to the directory with the jars' >&2; exit 2; }
	@$(if $(SPARK),$(spark_venv),$(pyspark42_venv))
	@$(call before_tests,$(interop_venv))
	@$(call recorded,interop) export PYSPARK_KAFKA_JVM_JARS="$$(cd '$(JVM_JARS)' && pwd)" && test -n "$$PYSPARK_KAFKA_JVM_JARS" && \
		$(interop_venv)/bin/python -m pytest tests/integration/_connector/spark/test_checkpoint_interop.py \
		tests/integration/_connector/spark/test_connector_options.py $(ARGS)

test-yarn: $(VENV)  ## Run programs on YARN, in client and in cluster mode
	@$(call before_tests,$(VENV))
	@$(VENV)/bin/python -m pytest -q -m yarn tests/integration/clusters $(ARGS)

test-faults:  ## Kill KILLS drivers and KILLS tasks at the crash points of exactly-once writes, and print what came of it
	@$(prepare) $(VENV) --group test
	@$(call before_tests,$(VENV))
	@$(VENV)/bin/python -m pytest -q -m long --ignore tests/integration/security/test_matrix.py \
		--ignore tests/integration/_connector/spark/test_platforms.py
	@PYTHONPATH="$(CURDIR)/tests:$(CURDIR)/tools" $(VENV)/bin/python -m faults.run --kills $(KILLS) --seed $(SEED) $(ARGS)

security-matrix:  ## Test each login with each kind of query, 8 minutes, and write docs/security-matrix.md
	@$(prepare) $(VENV) --group test
	@$(call before_tests,$(VENV))
	@mkdir -p build && rm -f build/security-matrix.jsonl
	@PYSPARK_KAFKA_MATRIX="$(CURDIR)/build/security-matrix.jsonl" \
		$(VENV)/bin/python -m pytest -q -m 'not kerberos' tests/integration/security/test_matrix.py $(ARGS); status=$$?; \
		$(VENV)/bin/python tools/security_matrix.py build/security-matrix.jsonl docs/security-matrix.md; exit $$status

test-kerberos:  ## Test Kerberos logins; needs MIT Kerberos with a KDC (Debian: krb5-kdc krb5-user libkrb5-dev)
	@for needed in krb5-config kinit; do command -v $$needed > /dev/null || \
		{ echo "make test-kerberos: $$needed is not here; Debian has it in krb5-kdc, krb5-user, libkrb5-dev" >&2; exit 2; }; done
	@$(prepare) .venv-kerberos --group test --with 'gssapi>=1.8,<2' --with 'k5test>=0.10,<1'
	@$(call before_tests,.venv-kerberos)
	@mkdir -p build && rm -f build/kerberos.jsonl
	@PYSPARK_KAFKA_MATRIX="$(CURDIR)/build/kerberos.jsonl" \
		.venv-kerberos/bin/python -m pytest -q -m kerberos tests/integration/security/test_matrix.py $(ARGS); status=$$?; \
		.venv-kerberos/bin/python tools/security_matrix.py build/kerberos.jsonl docs/security-matrix.md; exit $$status

test-chaos:  ## Run queries on a cluster in motion for MINUTES, and print what came of it; JVM_JARS as for bench
	@$(if $(JVM_JARS),$(pyspark42_venv),$(prepare) $(VENV) --group test)
	@$(call before_tests,$(if $(JVM_JARS),.venv-pyspark42,$(VENV)))
	@PYTHONPATH="$(CURDIR)/tests:$(CURDIR)/tools" $(if $(JVM_JARS),.venv-pyspark42,$(VENV))/bin/python -m \
		$(if $(CONTINUOUS),chaos.continuous.run --guarantee $(CONTINUOUS) --kills $(KILLS),chaos.run --minutes $(MINUTES)) \
		--seed $(SEED) $(if $(JVM_JARS),--jvm-jars '$(JVM_JARS)') $(ARGS)

results:  ## Take the records of finished runs into docs/results, and write the pages that show them
	@$(prepare) $(VENV) --group dev
	@$(VENV)/bin/python tools/results.py
	@$(VENV)/bin/python tools/promises.py > docs/promises.md

soak:  ## Run queries of all kinds for MINUTES, and print whether memory, descriptors, threads or files grow
	@$(prepare) $(VENV) --group test --with 'psutil>=7,<8'
	@$(call before_tests,$(VENV))
	@PYTHONPATH="$(CURDIR)/tests:$(CURDIR)/tools" $(VENV)/bin/python -m soak.run --minutes $(MINUTES) $(ARGS)

bench:  ##* Measure, 10 minutes (30 beside the JVM connector of JVM_JARS=directory); CASES=read,write-exactly-once, SPARK=4.0
	@$(prepare) $(bench_venv) --group typed --with 'pyspark==$(if $(SPARK),$(SPARK).*,4.2.0)'
	$(if $(CASES),,$(bench_venv)/bin/python bench/kernel.py)
	$(if $(CASES),,$(bench_venv)/bin/python bench/fetch.py)
	$(if $(CASES),,$(bench_venv)/bin/python bench/first_record.py)
	$(if $(CASES),,$(bench_venv)/bin/python bench/connector.py)
	$(if $(CASES),,$(bench_venv)/bin/python bench/typed.py $(if $(JVM_JARS),--jvm-jars '$(JVM_JARS)'))
	$(if $(CASES),,$(bench_venv)/bin/python bench/keyed_state.py --keys 1000000 --stores toolkit$(comma)dict)
	$(bench_venv)/bin/python bench/run.py --cases '$(CASES)' $(if $(JVM_JARS),--jvm-jars '$(JVM_JARS)') $(ARGS)

bench-decoders:  ## Measure the decoders of typed values alone, 1 minute; ARGS="--only json-flat" for some
	@$(prepare) .venv-bench --group test --with 'pyspark==4.2.0' --with 'polars>=1.30,<3' --with 'duckdb>=1.3,<3'
	.venv-bench/bin/python bench/decoders.py $(ARGS)

bench-typed:  ## Measure typed columns in JSON, Avro, Protobuf; JVM_JARS=directory also has the jars of spark-avro and spark-protobuf
	@$(prepare) .venv-bench --group typed --with 'pyspark==4.2.0'
	.venv-bench/bin/python bench/typed.py --cases '$(CASES)' $(if $(JVM_JARS),--jvm-jars '$(JVM_JARS)') $(ARGS)

bench-arrow:  ## Measure read_arrow beside other clients without Spark, 2 minutes; ARGS="--partitions 1" for another topic
	@$(prepare) .venv-bench --with 'confluent-kafka>=2.12,<3' --with 'duckdb>=1.3,<3'
	.venv-bench/bin/python bench/arrow_read.py $(ARGS)

bench-start:  ## Measure the first seconds of a query, with a time line by process; JVM_JARS as for bench
	@$(prepare) .venv-bench --with 'pyspark==4.2.0'
	.venv-bench/bin/python bench/start.py $(if $(JVM_JARS),--jvm-jars '$(JVM_JARS)') $(ARGS)

bench-latency:  ## Measure latencies of micro-batches, of continuous queries, of planning; JVM_JARS as for bench
	@$(prepare) .venv-bench --with 'pyspark==4.2.0' --with 'confluent-kafka>=2.12,<3'
	.venv-bench/bin/python bench/latency.py $(if $(JVM_JARS),--jvm-jars '$(JVM_JARS)') $(ARGS)
	.venv-bench/bin/python bench/continuous_reader.py
	.venv-bench/bin/python bench/continuous_restart.py
	.venv-bench/bin/python bench/continuous_idle.py
	.venv-bench/bin/python bench/continuous.py $(if $(JVM_JARS),--jvm-jars '$(JVM_JARS)')
	.venv-bench/bin/python bench/continuous.py --parts latency --librdkafka $(if $(JVM_JARS),--jvm-jars '$(JVM_JARS)')
	.venv-bench/bin/python bench/planning.py
	.venv-bench/bin/python bench/held_back.py

bench-cycle:  ## Count calls, system calls and requests of one turn of a continuous query; ARGS="--modules 20" for where
	@$(prepare) $(VENV) --group test
	PYTHONPATH="$(CURDIR)/tests" $(VENV)/bin/python bench/cycle.py $(ARGS)

bench-scale:  ## Measure what grows with the cluster and with the batch, 10 minutes; ARGS="--parts lookups,store" for some
	@$(prepare) .venv-bench --group bench --with 'pyspark==4.2.0'
	PYTHONPATH="$(CURDIR)/tests" .venv-bench/bin/python bench/scale.py $(ARGS)

bench-state:  ## Measure state by key, 1 M and 10 M keys, beside Spark's and other stores; ARGS="--keys 1000000" for some
	@$(prepare) .venv-bench --group bench --with 'pyspark==4.2.0'
	.venv-bench/bin/python bench/keyed_state.py $(ARGS)

bench-group:  ## Measure what commitOffsetsToGroup adds to a micro-batch
	@$(prepare) $(VENV) --group test
	$(VENV)/bin/python bench/group_commit.py $(ARGS)

bench-checkpoints:  ## Measure checkpoint commands on 100,000 batches; ARGS=--every also reads every file
	@$(prepare) .venv-bench --group bench --with 'pyspark==4.2.0'
	.venv-bench/bin/python bench/checkpoints.py $(ARGS)

fuzz:  ## Fuzz every target for SECONDS each (23 targets, together 29 minutes)
	@$(fuzz_venv)
	.venv-fuzz/bin/python fuzz/run_fuzz.py --seconds $(SECONDS) $(ARGS)

fuzz-asan:  ## Fuzz and test the compiled codec under AddressSanitizer, SECONDS for each of 2 targets
	@$(fuzz_venv)
	.venv-fuzz/bin/python fuzz/run_asan.py --seconds $(SECONDS)

fuzz-corpus:  ## Put what fuzzing found worth keeping into fuzz/corpus
	@$(fuzz_venv)
	.venv-fuzz/bin/python fuzz/minimise_corpus.py

clean:  ##* Remove virtual environments, builds and caches; not the broker's jars in the user's cache
	rm -rf .venv .venv-* build fuzz/crashes dist src/*.egg-info src/pyspark_kafka/records/_kernel*.so src/pyspark_kafka/_typed/codecs/*/_kernel*.so
	rm -rf .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis spark-warehouse metastore_db derby.log
	find src tests tools bench fuzz -name __pycache__ -prune -exec rm -rf {} +
