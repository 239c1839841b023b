# Kubebuilder's habits: `make help` lists everything.

SHELL := /usr/bin/env bash
.SHELLFLAGS := -o pipefail -ec
.DEFAULT_GOAL := help

CARGO ?= cargo
OUTRIDER ?= $(CARGO) run --quiet --
# Where `make run` and `make install` find a cluster; `make cluster` prints a line that sets KUBECONFIG.
KUBECTL ?= $(shell command -v kubectl || $(CARGO) run --quiet -p cluster -- tools | awk '$$1 == "kubectl" { print $$2 }')
ENABLE_WEBHOOKS ?= true
# Where the API server reaches `make run`: this machine, unless it runs elsewhere.
WEBHOOK_URL ?= https://127.0.0.1:9443
# Where `make run` serves webhooks: loopback, which only an API server on this machine reaches. :9443 is every interface.
WEBHOOK_BIND_ADDRESS ?= 127.0.0.1:9443
# Kinds beside SidecarSet that `make run` serves: * is all.
ENABLE_KINDS ?= *
# The image that is built and deployed.
IMG ?= outrider:latest
# false: what is not there is an error when it is removed.
ignore-not-found ?= true

.PHONY: help
help: ## Show this help.
	@awk 'BEGIN {FS = ":.*##"; printf "Usage:\n  make \033[36m<target>\033[0m\n"} \
	  /^[a-zA-Z_-]+:.*?##/ { printf "  \033[36m%-21s\033[0m %s\n", $$1, $$2 } \
	  /^##@/ { printf "\n\033[1m%s\033[0m\n", substr($$0, 5) }' $(MAKEFILE_LIST)

##@ Use

.PHONY: demo
demo: ## Serve built-in examples on loopback, send them a pod, show what changed. No cluster needed.
	@$(CARGO) build --bin outrider
	@$(CARGO) run --quiet --bin outrider -- demo

.PHONY: cluster
cluster: ## Start a real control plane on loopback; prints the line that sets KUBECONFIG.
	@$(CARGO) run --quiet -p cluster -- up

.PHONY: cluster-down
cluster-down: ## Stop what `make cluster` started.
	@$(CARGO) run --quiet -p cluster -- down

# The namespace keeps the authority of the certificates, so that a restart does not make another.
.PHONY: run
run: ## Serve the cluster of KUBECONFIG from this machine on WEBHOOK_BIND_ADDRESS, webhooks registered by WEBHOOK_URL.
	$(REACH_CLUSTER)
	$(NOT_INSTALLED)
	@$(MAKE) --no-print-directory install
	@$(KUBECTL) get namespace outrider-system >/dev/null 2>&1 || $(KUBECTL) create namespace outrider-system
	$(CARGO) run --quiet -- serve --certificates self --webhook-bind-address $(WEBHOOK_BIND_ADDRESS) \
	  --health-probe-bind-address 127.0.0.1:8081 --metrics-bind-address 127.0.0.1:8082 --enable-webhooks=$(ENABLE_WEBHOOKS) --enable-kinds='$(ENABLE_KINDS)' \
	  $(if $(filter true,$(ENABLE_WEBHOOKS)),--register-webhooks --webhook-url $(WEBHOOK_URL))

# The API server refuses a URL beside a Service, and an apply leaves the URL of a process that registered itself. What is replaced
# keeps nothing, in one step: a process that is still there puts its URL back at once.
.PHONY: install
install: ## Install the CRDs into the cluster of KUBECONFIG.
	$(REACH_CLUSTER)
	$(KUBECTL) apply --server-side --force-conflicts -f config/crd/bases || $(KUBECTL) replace -f config/crd/bases

# First the webhooks and the converter: no process may be left that answers.
.PHONY: uninstall
uninstall: ## Remove the CRDs, and with them every object of their kinds.
	$(REACH_CLUSTER)
	$(OUTRIDER) uninstall
	$(KUBECTL) delete --ignore-not-found=$(ignore-not-found) -f config/crd/bases

.PHONY: deploy
deploy: ## Deploy config/default with IMG into the cluster of KUBECONFIG; cert-manager must be there.
	$(REACH_CLUSTER)
	$(CERT_MANAGER)
	$(INSTALLER) | $(KUBECTL) apply --server-side -f -

# What asks goes before what answers, and objects go while a controller is there to take its finalizers off them.
.PHONY: undeploy
undeploy: ## Remove what `make deploy` made, with the CRDs and every object of their kinds.
	$(REACH_CLUSTER)
	$(KUBECTL) delete --ignore-not-found=$(ignore-not-found) -f config/webhook/manifests.yaml
	$(KUBECTL) delete --ignore-not-found=$(ignore-not-found) -f config/crd/bases
	$(KUBECTL) delete --ignore-not-found -k config/default

.PHONY: build-installer
build-installer: ## Write dist/install.yaml: config/default with IMG, for kubectl apply --server-side.
	mkdir -p dist
	$(INSTALLER) > dist/install.yaml

.PHONY: all
all: install build image deploy ## CRDs, binary, image, deployment.

# kubectl says in many lines which address did not answer, and not what to do about it.
REACH_CLUSTER = @$(KUBECTL) get --raw=/version --request-timeout=10s >/dev/null || \
  { echo 'No cluster answers: set KUBECONFIG to one, or start a local one: eval "$$(make cluster)"' >&2; exit 1; }

NOT_INSTALLED = @service=$$($(KUBECTL) get mutatingwebhookconfiguration outrider-mutating --ignore-not-found \
  -o jsonpath='{.webhooks[0].clientConfig.service.name}') || exit 1; [ -z "$$service" ] || \
  { echo "Outrider is installed in this cluster: outrider-mutating calls Service $$service. Use another cluster, or remove the installation first." >&2; exit 1; }

# Without it the webhooks would be there, and no certificate: every new pod would be refused.
CERT_MANAGER = @$(KUBECTL) get crd certificates.cert-manager.io >/dev/null 2>&1 || \
  { echo 'cert-manager is not in this cluster: install it first, or use the chart with --set certManager.enabled=false' >&2; exit 1; }

INSTALLER = $(KUBECTL) kustomize config/default | sed 's|image: controller:latest|image: $(IMG)|'

##@ Develop

.PHONY: manifests
manifests: ## Write what is made from the code: CRDs, RBAC, webhook configurations, parts of the chart, reference pages.
	$(CARGO) run --quiet -- manifests --enable-kinds '*' --excluded-namespaces cert-manager --output-dir config
	$(CARGO) run --quiet -- manifests chart --output-dir charts/outrider
	UPDATE_GOLDEN=1 $(CARGO) test --quiet --test docs

.PHONY: fmt
fmt: ## Format the code.
	$(CARGO) fmt --all

.PHONY: lint
lint: ## Check format, lints and the links in documentation; all must be clean.
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --quiet --locked --no-deps -p outrider-admission -p outrider-engine -p outrider

.PHONY: lint-workflows
lint-workflows: ## Check the workflow files of .github with actionlint, which Go builds.
	go run github.com/rhysd/actionlint/cmd/actionlint@v1.7.7

.PHONY: build
build: ## Build the release binary.
	$(CARGO) build --release --locked

.PHONY: book
book: ## Build docs/ as a book with search, in target/book; needs mdbook.
	@command -v mdbook >/dev/null || { echo "mdbook is not installed: cargo install mdbook --locked" >&2; exit 1; }
	mdbook build --dest-dir $(TARGET_DIR)/book

##@ Image

# Profile of the binary in the image. `dev` builds quickly, for tests.
IMAGE_PROFILE ?= release
TARGET_DIR := $(abspath $(or $(CARGO_TARGET_DIR),target))
IMAGE_DIR := $(TARGET_DIR)/image
# Bytes that an image in release may have, unpacked.
IMAGE_LIMIT := 20000000

# The flags after `--` concern the binary alone: procedural macros cannot be linked statically. Inlining less than rustc does by
# default saves more than two megabytes, and costs a few percent of the instructions of a review. Rust links with LLVM's linker on
# x86-64 alone, which folds equal functions into one and packs the addresses that are to be relocated.
LINK_SMALL := -C link-arg=-Wl,--icf=all -C link-arg=-Wl,-O2 -C link-arg=-Wl,-z,pack-relative-relocs

# With frame pointers the tables for unwinding need not describe each push: half a megabyte less, and stacks for profilers.
FRAME_POINTERS := RUSTFLAGS="$$RUSTFLAGS -C force-frame-pointers=yes"

.PHONY: static
static: ## Build the static binary of the image; TARGET=triple for another platform.
	$(if $(filter release,$(IMAGE_PROFILE)),$(FRAME_POINTERS)) $(CARGO) rustc --locked -p outrider --bin outrider --profile $(IMAGE_PROFILE) $(if $(TARGET),--target $(TARGET)) -- \
	  -C target-feature=+crt-static -C strip=symbols -C llvm-args=-inline-threshold=5 $(if $(filter-out x86_64-%,$(TARGET)),,$(LINK_SMALL))

.PHONY: docker-build
docker-build: ## Build the image IMG with Docker.
	docker build --build-arg COMMIT="$$(git describe --always --dirty --abbrev=12 --exclude='*' 2>/dev/null)" -t $(IMG) .

.PHONY: docker-push
docker-push: ## Push the image IMG with Docker.
	docker push $(IMG)

.PHONY: image ko-image
ko-image: image ## The same as `make image`.
image: ## Build the image IMG with cargo and buildah, without a Docker engine, into the file target/image/outrider.tar.
	@command -v buildah >/dev/null || { echo "buildah is not there: apt-get install buildah, or use \`make docker-build\`" >&2; exit 1; }
	@$(MAKE) --no-print-directory static IMAGE_PROFILE=$(IMAGE_PROFILE)
	@rm -rf $(IMAGE_DIR) && mkdir -p $(IMAGE_DIR)/build
	@cp $(TARGET_DIR)/$(IMAGE_PROFILE:dev=debug)/outrider $(IMAGE_DIR)/build/static
	$(BUILDAH) build --quiet --isolation chroot --build-context build=$(IMAGE_DIR)/build --timestamp 0 --tag $(IMG) . >/dev/null
	$(BUILDAH) push --quiet $(IMG) docker-archive:$(IMAGE_DIR)/outrider.tar:$(IMG)
	@size=$$(stat -c %s $(IMAGE_DIR)/outrider.tar) && echo "$(IMAGE_DIR)/outrider.tar: $(IMG), $$size bytes" && \
	  { [ $(IMAGE_PROFILE) != release ] || [ $$size -lt $(IMAGE_LIMIT) ] || { echo "more than $(IMAGE_LIMIT) bytes" >&2; exit 1; }; }

BUILDAH = buildah --storage-driver vfs --root $(IMAGE_DIR)/storage --runroot $(IMAGE_DIR)/storage-run

.PHONY: sbom
sbom: ## List what the binary is made of, as CycloneDX, in dist/outrider.cdx.json; needs cargo-cyclonedx.
	@$(CARGO) cyclonedx --version >/dev/null 2>&1 || { echo "cargo-cyclonedx is not there: cargo install cargo-cyclonedx --locked" >&2; exit 1; }
	$(CARGO) cyclonedx --format json --spec-version 1.5 --no-build-deps --target x86_64-unknown-linux-gnu --manifest-path Cargo.toml
	@# It writes a list for every package of the workspace.
	@mkdir -p dist && mv outrider.cdx.json dist/ && rm crates/*/*.cdx.json benches/*/*.cdx.json tests/*/*.cdx.json
	@echo dist/outrider.cdx.json

##@ Test

.PHONY: test-unit
test-unit: ## Everything that needs no cluster: under two minutes, once built.
	$(CARGO) test --workspace --exclude cluster --locked

.PHONY: test
test: ## All tests: the quick ones first, then those on a real API server, which is built on first use.
	@echo "==> lint" && $(MAKE) --no-print-directory lint
	@echo "==> tests without a cluster" && $(MAKE) --no-print-directory test-unit
	@echo "==> cluster tools (built once per machine and version)" && $(CARGO) run --quiet --locked -p cluster -- tools
	@echo "==> tests on a real API server" && $(MAKE) --no-print-directory test-cluster

# The same packages as in test-unit: with fewer, cargo would build their dependencies anew with fewer features.
# Another version of Outrider is there in `make test-skew` only. Most tests wait, most of the time: for a minute to pass, for a
# lease to end; so more of them run than there are processors.
.PHONY: test-cluster
test-cluster: export RUST_TEST_THREADS ?= $(shell echo $$((2 * $$(getconf _NPROCESSORS_ONLN))))
test-cluster: ## Tests on a real API server.
	$(CARGO) test --locked -p cluster
	$(CARGO) test --locked --workspace --exclude cluster --exclude node -- --ignored --skip version_skew:: --skip bench::

# Each commit has a folder of its own: what cargo built of one is never taken for another.
.PHONY: test-skew
test-skew: ## Replicas of this version beside replicas of the git ref PREVIOUS, as while a rollout lasts.
	@[[ -n "$(PREVIOUS)" ]] || { echo "PREVIOUS is the git ref of the other version: make test-skew PREVIOUS=v0.1.0" >&2; exit 1; }
	@commit=$$(git rev-parse --verify --short=12 "$(PREVIOUS)^{commit}") && previous=$(TARGET_DIR)/skew/$$commit && \
	if [[ ! -x $$previous/outrider ]]; then \
	  echo "==> building $(PREVIOUS) ($$commit)" && mkdir -p $$previous && git archive $$commit | tar --extract --directory $$previous && \
	  OUTRIDER_COMMIT=$$commit $(CARGO) build --locked --manifest-path $$previous/Cargo.toml --target-dir $(TARGET_DIR) --bin outrider && \
	  cp $(TARGET_DIR)/debug/outrider $$previous/outrider; \
	fi && \
	OUTRIDER_PREVIOUS=$$previous/outrider $(CARGO) test --locked --workspace --exclude cluster --exclude node --test e2e -- --ignored \
	  version_skew::

# Seconds of fuzzing, of all targets together.
TIME ?= 600
FUZZ_TARGETS := $(patsubst fuzz/targets/%.rs,%,$(wildcard fuzz/targets/*.rs))
FUZZ_SECONDS = $$(( $(TIME) / $(words $(FUZZ_TARGETS)) ))

# No sanitizer: there is no unsafe code of ours to find faults in, and without one there are several times as many executions. Folders of
# the other tests are read and never written.
.PHONY: fuzz
fuzz: ## Fuzz all targets for TIME seconds in all; needs a nightly toolchain and cargo-fuzz.
	@$(CARGO) fuzz --version >/dev/null 2>&1 || { echo "cargo-fuzz is not installed: cargo install cargo-fuzz --locked" >&2; exit 1; }
	$(CARGO) +nightly fuzz build --sanitizer none
	@for target in $(FUZZ_TARGETS); do \
	  case $$target in \
	    review) more="tests/fixtures/reviews"; words=json ;; \
	    set) more="tests/fixtures/manifests"; words=json ;; \
	    conversion|selector) more=""; words=json ;; \
	    *) more=""; words=text ;; \
	  esac; \
	  mkdir -p fuzz/corpus/$$target && echo "==> $$target, $(FUZZ_SECONDS) s" && \
	  $(CARGO) +nightly fuzz run --sanitizer none $$target fuzz/corpus/$$target fuzz/seeds/$$target fuzz/regressions/$$target $$more -- \
	    -max_total_time=$(FUZZ_SECONDS) -timeout=10 -rss_limit_mb=2000 -max_len=16384 -print_final_stats=1 -verbosity=0 \
	    -dict=fuzz/dictionaries/$$words.dict || exit 1; \
	done

.PHONY: soak
soak: ## Availability at full length: a minute and 3,000 creates for each disturbance; prints the figures.
	OUTRIDER_SOAK=1 $(CARGO) test --locked -p outrider --test availability -- --ignored --nocapture --test-threads=1

# The chart's default is a released image; tests bring theirs in.
test-node test-node-all node: IMG := localhost/outrider:test
# `make test` has built it already.
test-node node: IMAGE_PROFILE := dev

.PHONY: test-node
test-node: image ## One install of the chart on a real node: kubelet, containerd, cert-manager. Needs root and Linux.
	OUTRIDER_IMAGE=$(IMAGE_DIR)/outrider.tar $(CARGO) test --locked -p node --test install -- --ignored --nocapture --exact \
	  the_chart_works_from_install_to_uninstall

.PHONY: test-node-all
test-node-all: image ## All ways to install on a real node, one after the other, with the image as it is released.
	OUTRIDER_IMAGE=$(IMAGE_DIR)/outrider.tar $(CARGO) test --locked -p node --test install -- --ignored --nocapture --test-threads=1

.PHONY: node
node: image ## A real node, until Ctrl-C; prints how to run commands beside it. Needs root and Linux.
	@OUTRIDER_IMAGE=$(IMAGE_DIR)/outrider.tar $(CARGO) run --quiet --locked -p node

.PHONY: collector-experiment
collector-experiment: ## Count the events of a Deployment that is scaled, switched and loses pods; starts its own cluster.
	$(CARGO) test --quiet --locked -p outrider --test e2e -- --ignored --exact --nocapture \
	  collector_experiment::a_collector_counts_what_an_independent_watch_counts

.PHONY: differential
differential: ## Pods, services and claims beside the API server's own plugins, more of them: PODS=3000, SEED=number; starts its own clusters.
	OUTRIDER_DIFFERENTIAL_PODS=$(or $(PODS),3000) OUTRIDER_DIFFERENTIAL_SEED=$(or $(SEED),$(shell date +%s)) \
	  $(CARGO) test --locked --test e2e -- --ignored --nocapture --exact \
	  differential::pods_and_services_come_out_as_from_the_plugins_of_the_api_server \
	  plugins_pod_security::pods_of_new_namespaces_are_refused_as_by_the_defaults_of_the_api_server \
	  plugins_quota::limited_resources_need_a_quota_as_in_the_plugin_of_the_api_server \
	  plugins_storage::claims_get_the_class_that_the_plugin_of_the_api_server_gives_them

.PHONY: bench-events
bench-events: ## What EventRateLimit costs while 1,000 events a second arrive: rate, time and processor time with it and without; starts its own cluster.
	$(CARGO) build --release --locked -p outrider
	OUTRIDER_BINARY=$(TARGET_DIR)/release/outrider $(CARGO) test --locked -p outrider --test e2e -- --ignored --exact --nocapture \
	  events::a_thousand_events_a_second_do_not_fail

.PHONY: bench-cronjob
bench-cronjob: ## Time until the Jobs of 300 CronJobs of one minute exist, ours and the built-in controller's; starts its own cluster.
	$(CARGO) build --release --locked -p outrider
	OUTRIDER_BINARY=$(TARGET_DIR)/release/outrider $(CARGO) test --locked -p outrider --test e2e -- --ignored --exact --nocapture \
	  bench::three_hundred_cronjobs_of_one_minute_have_their_jobs_as_soon_as_with_the_built_in_controller

.PHONY: bench-rollouts
bench-rollouts: ## Memory of the leader, time and requests of rollouts over 5,000 pods of 201 sets; starts its own cluster.
	$(CARGO) build --release --locked -p outrider
	OUTRIDER_BINARY=$(TARGET_DIR)/release/outrider $(CARGO) test --locked -p outrider --test e2e -- --ignored --exact --nocapture \
	  bench::rollouts::five_thousand_pods_of_two_hundred_sets_follow

.PHONY: latency
latency: ## What reviews add to the creation of a pod with 1,000 sets, p50 and p99, with narrowed webhooks and without, and how long a new set is unknown; starts its own clusters.
	$(CARGO) build --release --locked -p outrider
	OUTRIDER_BINARY=$(TARGET_DIR)/release/outrider $(CARGO) test --locked -p outrider --test e2e -- --ignored --exact --nocapture \
	  bench::latency::the_creation_of_a_pod_takes_longer_by_the_calls_that_its_sets_need \
	  bench::latency::a_pod_that_is_created_after_a_set_has_it_once_the_replica_has_read_the_set

.PHONY: bench-memory
bench-memory: ## What one stored object of each watched kind costs in memory, into docs/operations.md.
	UPDATE_GOLDEN=1 $(CARGO) test --test memory

# One at a time: the figures are of the attack alone.
.PHONY: bench-attacks
bench-attacks: ## How long reviews take at rest and while each attack lasts, at every place that users can write to; starts its own clusters.
	$(CARGO) test --locked -p outrider --test server -- --ignored --nocapture --test-threads=1 --exact \
	  hostile::reviews_and_probes_are_answered_among_hostile_bodies
	$(CARGO) test --locked -p outrider --test e2e -- --ignored --nocapture --test-threads=1 --exact \
	  stored_attacks::what_users_may_store_ends_no_leader_and_delays_no_review \
	  cronjob_flood::of_cronjobs_that_are_always_due_a_process_writes_a_bounded_amount_and_reviews_go_on \
	  cronjob_hostile::hostile_objects_are_listed_and_deleted_in_both_versions_and_keep_no_namespace

.PHONY: bench
bench: ## CPU time and requests per second beside a server that allows every request; needs wrk.
	$(FRAME_POINTERS) $(CARGO) build --release --locked -p outrider -p null-server -p compare
	target/release/compare --gate 2.0 $(BENCH_ARGS)

# glibc compares as in the image, and keeps freed memory: what the kernel takes to give it again is no part of a decision.
HOSTILE_TUNABLES := glibc.cpu.hwcaps=-AVX512F,-AVX512VL:glibc.malloc.mmap_threshold=33554432:glibc.malloc.trim_threshold=1073741824

.PHONY: bench-hostile
bench-hostile: ## CPU time and memory of the worst bodies, beside harmless ones; fails when one is beyond its bound.
	$(FRAME_POINTERS) $(CARGO) build --release --locked -p hostile
	GLIBC_TUNABLES=$(HOSTILE_TUNABLES) target/release/hostile $(BENCH_ARGS)
