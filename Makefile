# planc: see README.md. Targets: deps build release cuda emulated gpu-bundle check-gpu demo check bench fuzz faults lint asan tsan memcheck
# install uninstall clean.
# `build` installs nothing; `demo`, `check` and `fuzz` install what is missing. `build` has assertions, for tests and for who works on
# planc; `release`, what is installed, has none.
BUILD ?= build
PREFIX ?= /usr/local
ifeq ($(origin CC),default)
CC = gcc
endif
PYTHON ?= python3

CFLAGS ?= -O2 -g
WARNINGS = -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes
# Numerics of the host backend, fitted models and prices must not depend on how the compiler contracts expressions.
ALL_CFLAGS = -std=c11 -ffp-contract=off -D_POSIX_C_SOURCE=200809L $(WARNINGS) $(CFLAGS) $(EXTRA_CFLAGS) -Iinclude -Isrc -I.
# Loops over elements become vector code at this level only. It changes no result: sums keep their order.
$(BUILD)/runtime/host/%.o: ALL_CFLAGS += -O3
$(BUILD)/planner/bound/%.o: ALL_CFLAGS += -O3
# Unit tests themselves are compiled in half of the time so; what they call is as ever.
$(BUILD)/tests/unit/%.o: ALL_CFLAGS += -O1 -g1

SHARED_SRC = $(wildcard src/util/*.c src/graph/*.c src/cost/*.c src/plan/*.c src/check/*.c)
PLANC_LIB_SRC = $(SHARED_SRC) $(wildcard planner/*.c planner/*/*.c planner/*/*/*.c)
# What both programs are made of, and no library.
PROGRAM_SRC = $(wildcard src/program/*.c)
PLANC_SRC = $(wildcard src/*.c src/cli/*.c) $(PROGRAM_SRC)
CUDA_C = $(wildcard runtime/cuda/*.c)
CUDA_CU = $(wildcard runtime/cuda/kernels/*.cu)
PLANRUN_SRC = runtime/planrun.c $(wildcard runtime/cli/*.c) $(PROGRAM_SRC)
RT_LIB_SRC = $(filter-out $(PLANRUN_SRC),$(wildcard runtime/*.c runtime/profile/*.c runtime/host/*.c))
# Sources with assertions, their headers' included. Objects of the others are the same with and without: `release` takes
# those of PLAIN.
ASSERTING := $(shell grep -lE '^.include (<assert.h>|".*/(one_job|gaps|rehearsal_state).h")' $$(find src planner runtime -name '*.c'))
PLAIN ?= $(BUILD)
object = $(if $(filter $(ASSERTING),$(1)),$(BUILD),$(PLAIN))/$(1:.c=.o)
obj = $(foreach source,$(1),$(call object,$(source)))

LIBPLANC = $(BUILD)/libplanc.a
LIBPLANRT = $(BUILD)/libplanrt.a
LIBS = -lyaml -lcjson -lz -ldnnl -lgomp -lpthread -ldl -lm

UNIT = $(patsubst tests/unit/test_%.c,%,$(wildcard tests/unit/test_*.c))
TEST_SUPPORT = $(wildcard tests/support/*.c)

.PHONY: build plain release cuda emulated cuda-tests torch-extension gpu-bundle check-gpu lib deps test-deps check demo unit fuzzers bench fuzz faults lint asan tsan memcheck install uninstall clean always
.DELETE_ON_ERROR:
.SECONDARY:

# Libraries may be installed, or bundled, in the lib folder beside the programs'.
BESIDE = -Wl,-rpath,'$$ORIGIN/../lib'
build: $(BUILD)/planc $(BUILD)/planrun $(BUILD)/libplanrt-follow.so
lib: $(LIBPLANC)

$(BUILD)/planc: $(call obj,$(PLANC_SRC)) $(LIBPLANC)
	$(CC) $(LDFLAGS) $(EXTRA_CFLAGS) $(BESIDE) -o $@ $^ -lyaml -lcjson -lm
LINK_OPENER = $(CC) $(LDFLAGS) $(EXTRA_CFLAGS) -rdynamic $(BESIDE) -o $@ $(filter %.o,$^) \
	-Wl,--whole-archive $(filter %.a,$^) -Wl,--no-whole-archive $(LIBS)
$(BUILD)/planrun: $(call obj,$(PLANRUN_SRC)) $(LIBPLANRT) $(LIBPLANC)
	$(LINK_OPENER)

# The follower, for a framework's process, which may have a oneDNN of its own: without the host backend.
FOLLOW_SRC = $(SHARED_SRC) $(wildcard runtime/follow*.c)
FOLLOWER = $(BUILD)/libplanrt-follow.so
# The same objects are in the programs. Without interposition calls are as in these.
$(call obj,$(FOLLOW_SRC)): ALL_CFLAGS += -fPIC -fno-semantic-interposition
$(FOLLOWER): $(call obj,$(FOLLOW_SRC)) runtime/follow.map
	$(CC) -shared $(LDFLAGS) $(EXTRA_CFLAGS) -Wl,--version-script=runtime/follow.map -Wl,--no-undefined -o $@ $(filter %.o,$^) -lyaml -lcjson -lm

# planc_torch's extension, for each of these that has PyTorch. Who follows steps without it takes longer.
TORCH_PYTHONS ?= $(PYTHON) /usr/bin/python3
torch-extension: $(FOLLOWER)
	$(PYTHON) -B runtime/torch/build_extension.py $(IF_POSSIBLE) $(BUILD) $(TORCH_PYTHONS)

# The CUDA plug-in. What it takes of planc it finds in the program that opens it, which therefore has all of both libraries.
CUDA_HOME ?= $(or $(patsubst %/bin/nvcc,%,$(shell command -v nvcc)),$(firstword $(wildcard /usr/local/cuda /opt/cuda)))
CUDNN_HOME ?= $(CUDA_HOME)
NVCC = $(CUDA_HOME)/bin/nvcc
CUDA_LIBS = $(firstword $(wildcard $(CUDA_HOME)/lib64 $(CUDA_HOME)/lib))
CUDNN_LIBS = $(firstword $(wildcard $(CUDNN_HOME)/lib64 $(CUDNN_HOME)/lib))
CUDA_ARCHS ?= 75 80 86 89 90
ARCHS = $(filter-out unoptimised,$(CUDA_ARCHS))
# Sums are the same whatever the compiler contracts: it does not.
NVCC_FLAGS = -std=c++17 $(if $(filter unoptimised,$(CUDA_ARCHS)),-O0 -Xcicc -O0 -Xptxas -O0,-O3) -fmad=false -I. -Iinclude -Isrc --Werror all-warnings -Xfatbin=-compress-all -Xcompiler -fPIC,-Wall,-Wextra,-fvisibility=hidden \
	$(foreach a,$(ARCHS),-gencode arch=compute_$(a),code=sm_$(a)) \
	-gencode arch=compute_$(lastword $(ARCHS)),code=compute_$(lastword $(ARCHS))
CUDA_PLUGIN = $(BUILD)/libplanrt-cuda.so
cuda: build $(CUDA_PLUGIN)
# What kernels were last made for: they are made again for others.
ARCHS_MADE = $(BUILD)/cuda-archs
$(ARCHS_MADE): always
	@mkdir -p $(@D)
	@echo $(CUDA_ARCHS) | cmp -s - $@ || echo $(CUDA_ARCHS) > $@
$(CUDA_CU:%=$(BUILD)/%.o): $(ARCHS_MADE)
$(BUILD)/runtime/cuda/%.o: ALL_CFLAGS += -fPIC -fvisibility=hidden -isystem $(CUDA_HOME)/include -isystem $(CUDNN_HOME)/include
$(BUILD)/runtime/cuda/%.cu.o: runtime/cuda/%.cu
	@mkdir -p $(@D)
	$(NVCC) $(NVCC_FLAGS) -MMD -MP -c -o $@ $<
$(CUDA_PLUGIN): $(call obj,$(CUDA_C)) $(CUDA_CU:%=$(BUILD)/%.o)
	$(CC) -shared $(LDFLAGS) -Wl,--exclude-libs,ALL -o $@ $^ -L$(CUDA_LIBS) -L$(CUDNN_LIBS) -Wl,-rpath,'$$ORIGIN:$(CUDA_LIBS):$(CUDNN_LIBS)' \
		-lcudnn -lcublasLt -lcudart_static -lcjson -lstdc++ -lpthread -ldl -lrt -lm

# The same plug-in on an emulated device (tests/cuda/emulator/emulator.h), for machines without one.
EMULATED = $(BUILD)/emulated
EMULATED_PLUGIN = $(EMULATED)/libplanrt-cuda.so
EMULATOR_SRC = $(wildcard tests/cuda/emulator/*.cpp)
# Every thread of a kernel asks where it stands: -ftls-model has that without a call. -g1 has the lines, in less time than -g, and what
# runs at -O1 is compiled in two thirds of the time.
CXX_EMULATED = $(CXX) -std=c++17 -Wall -Wextra $(patsubst -g,-g1,$(patsubst -O2,-O1,$(CFLAGS))) $(EXTRA_CFLAGS) -DPLANRT_CUDA_SMALL_LIMITS -fPIC -ftls-model=initial-exec -I. -Iinclude -Isrc -isystem $(CUDA_HOME)/include \
	-isystem $(CUDNN_HOME)/include -MMD -MP -c
emulated: build $(EMULATED_PLUGIN)
# For a machine with a GPU: all that check-gpu needs in a folder, and check-gpu itself. As a test it has assertions.
gpu-bundle: build $(CUDA_PLUGIN) $(BUILD)/cuda/compare_backends
	tests/cuda/bundle $(BUILD) $(BUILD)/gpu-bundle
check-gpu: build $(CUDA_PLUGIN) $(BUILD)/cuda/compare_backends
	BUILD=$(BUILD) CUDA_HOME=$(CUDA_HOME) CUDNN_HOME=$(CUDNN_HOME) $(PYTHON) tests/cuda/check_gpu.py --out $(or $(OUT),$(BUILD)/check-gpu)
CUDA_PROGRAMS = backend_contract compare_backends count_allocations
CUDA_UNIT = $(patsubst tests/cuda/%,$(BUILD)/cuda/%,$(basename $(wildcard tests/cuda/test_*.c tests/cuda/test_*.cpp)))
CUDA_KERNELS = $(CUDA_CU:%=$(EMULATED)/%.o) $(EMULATED)/tests/cuda/emulator/kernels.cpp.o
cuda-tests: $(CUDA_PLUGIN) $(EMULATED_PLUGIN) $(CUDA_PROGRAMS:%=$(BUILD)/cuda/%) $(CUDA_UNIT)
$(BUILD)/tests/cuda/%.o: ALL_CFLAGS += -isystem $(CUDA_HOME)/include -isystem $(CUDNN_HOME)/include
LINK_CUDA_TEST = @mkdir -p $(@D) && $(CXX) $(FAST_LINK) $(LDFLAGS) $(EXTRA_CFLAGS) -rdynamic -o $@ $(filter %.o,$^) $(filter %.a,$^) $(CHECK_LIBS) $(LIBS) -lrt
$(BUILD)/cuda/test_emulator%: $(BUILD)/tests/cuda/test_emulator%.o \
		$(filter-out %/kernels.cpp.o,$(EMULATOR_SRC:%=$(EMULATED)/%.o)) $(BUILD)/tests/support/unit.o $(LIBPLANC)
	$(LINK_CUDA_TEST)
$(BUILD)/cuda/test_emulator: $(BUILD)/tests/cuda/test_emulator.o \
		$(filter-out %/kernels.cpp.o,$(EMULATOR_SRC:%=$(EMULATED)/%.o)) $(BUILD)/tests/support/unit.o $(LIBPLANC)
	$(LINK_CUDA_TEST)
$(BUILD)/cuda/test_cuda_division: $(EMULATED)/tests/cuda/test_cuda_division.cpp.o $(EMULATED)/tests/cuda/immediate.cpp.o \
		$(EMULATED)/tests/cuda/emulator/kernels.cpp.o $(BUILD)/tests/support/unit.o $(LIBPLANC)
	$(LINK_CUDA_TEST)
$(EMULATED)/tests/cuda/test_cuda_division.cpp.o: CXX_EMULATED += -include tests/cuda/emulator/emulated_kernels.h
$(BUILD)/cuda/test_cuda_tolerance: $(BUILD)/tests/cuda/tolerance.o
$(BUILD)/cuda/test_cuda_%: $(BUILD)/tests/cuda/test_cuda_%.o $(BUILD)/tests/cuda/kernel_call.o \
		$(EMULATED)/tests/cuda/immediate.cpp.o $(CUDA_KERNELS) $(call obj,$(wildcard runtime/cuda/ops*.c) $(TEST_SUPPORT)) $(LIBPLANRT) $(LIBPLANC)
	$(LINK_CUDA_TEST)
$(BUILD)/cuda/compare_backends: $(call obj,tests/cuda/tolerance.c tests/cuda/tally.c tests/cuda/samples.c)
$(CUDA_PROGRAMS:%=$(BUILD)/cuda/%): $(BUILD)/cuda/%: $(BUILD)/tests/cuda/%.o $(LIBPLANRT) $(LIBPLANC)
	@mkdir -p $(@D)
	$(LINK_OPENER)
$(EMULATED)/%.cpp.o: %.cpp
	@mkdir -p $(@D)
	$(CXX_EMULATED) -o $@ $<
$(EMULATED)/%.cu.o: %.cu
	@mkdir -p $(@D)
	$(CXX_EMULATED) -include tests/cuda/emulator/emulated_kernels.h -x c++ -o $@ $<
$(EMULATED_PLUGIN): $(call obj,$(CUDA_C)) $(CUDA_CU:%=$(EMULATED)/%.o) $(EMULATOR_SRC:%=$(EMULATED)/%.o)
	$(CXX) -shared $(LDFLAGS) $(EXTRA_CFLAGS) -o $@ $^ -lcjson -lpthread -ldl -lrt -lm

# Libraries are made anew so that a deleted source leaves no member behind.
$(LIBPLANC): $(call obj,$(PLANC_LIB_SRC))
	rm -f $@ && $(AR) rcs $@ $^
$(LIBPLANRT): $(call obj,$(RT_LIB_SRC))
	rm -f $@ && $(AR) rcs $@ $^

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

# Assertions that hold are not written to a file one by one: tests/support/unit.c has check's record of them.
CHECK_LIBS := $(shell pkg-config --libs check) -Wl,--wrap=_mark_point
# Test programs are many, and each has both libraries: gold, where there is one, links them in a third of the time.
FAST_LINK := $(if $(shell command -v ld.gold),-fuse-ld=gold)
$(BUILD)/tests/%: $(BUILD)/tests/unit/test_%.o $(call obj,$(TEST_SUPPORT)) $(LIBPLANRT) $(LIBPLANC)
	@mkdir -p $(@D)
	$(CC) $(FAST_LINK) $(LDFLAGS) $(EXTRA_CFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(CHECK_LIBS) $(LIBS)
$(BUILD)/tests/adopt: $(call obj,runtime/cli/watch.c)
$(BUILD)/tests/options: $(call obj,src/program/options.c)
test-%: $(BUILD)/tests/%
	$(BUILD)/tests/$*

# --- Setting up, showing, testing ------------------------------------------------------------------------------------

# Debian packages: what building and the demonstration need, and what testing needs beside that.
PACKAGES = gcc make pkg-config libyaml-dev libcjson-dev zlib1g-dev libdnnl-dev python3
TEST_PACKAGES = check g++ clang clang-format clang-tidy libclang-rt-dev shellcheck pyflakes3 python3-torch python3-setuptools libtorch-dev pybind11-dev glpk-utils
deps:
	@tests/deps $(PACKAGES)
test-deps:
	@tests/deps $(PACKAGES) $(TEST_PACKAGES)

# What follows `deps` is made by a make of its own, on all processors unless -j says otherwise (the + passes that on).
MAKE_ALL = $(MAKE) --no-print-directory $(if $(findstring jobserver,$(MAKEFLAGS)),,-j$(shell nproc))

demo: deps
	+@$(MAKE_ALL) build
	@BUILD=$(BUILD) tests/demo

# The CUDA backend is tested where there is a toolkit: on the emulated device, and by what needs no device.
HAS_CUDA = $(and $(wildcard $(NVCC)),$(wildcard $(CUDNN_HOME)/include/cudnn.h))
# No test here runs the plug-in on a GPU: for the oldest alone, which has the fewest instructions, it is made in a fifth of the
# time, and in less where its code is not optimised.
OLDEST = 75 unoptimised
check: test-deps
	+@$(MAKE_ALL) IF_POSSIBLE=--optional build unit fuzzers torch-extension \
		$(if $(HAS_CUDA),cuda-tests CUDA_ARCHS="$(or $(file <$(ARCHS_MADE)),$(OLDEST))")
	+@$(MAKE_ALL) release
	@BUILD=$(BUILD) $(PYTHON) tests/run

# With what tests/python/test_results.py has benchmarks compute again.
unit: $(UNIT:%=$(BUILD)/tests/%) $(BUILD)/bench/eq3_rounds $(BUILD)/bench/pair_speeds $(BUILD)/counted/planc $(patsubst tests/%.c,$(BUILD)/%.so,$(wildcard tests/preload/*.c))

# What tests load into programs before libc, which is before a sanitizer too.
$(BUILD)/preload/%.so: tests/preload/%.c
	@mkdir -p $(@D)
	$(CC) -std=c11 $(WARNINGS) $(CFLAGS) -fPIC -shared -o $@ $< -ldl

# tests/python/test_faults.py takes a sample of all calls that the system may refuse; this takes each.
faults: build $(BUILD)/preload/faults.so
	@BUILD=$(BUILD) FAULTS=all $(PYTHON) -B tests/python/test_faults.py

# Fuzz targets over given files; `make fuzz` builds them for libFuzzer and runs each for FUZZ_SECONDS, and has both checkers of
# plans judge FUZZ_MUTANTS of these, and tests try all of their cases, of many of which `make check` takes a sample.
FUZZ = $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_SECONDS ?= 60
FUZZ_MUTANTS ?= 100000
fuzzers: $(FUZZ:%=$(BUILD)/fuzz/%)
$(BUILD)/fuzz/%: tests/fuzz/fuzz_%.c tests/fuzz/standalone.c $(LIBPLANRT) $(LIBPLANC)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -o $@ $^ $(LIBS)
fuzz: test-deps
	+@$(MAKE_ALL) IF_POSSIBLE=--optional build unit torch-extension \
		$(if $(HAS_CUDA),cuda-tests CUDA_ARCHS="$(or $(file <$(ARCHS_MADE)),$(OLDEST))")
	@BUILD=$(BUILD) FUZZ_SECONDS=$(FUZZ_SECONDS) tests/fuzz/run $(FUZZ)
	@BUILD=$(BUILD) SECOND_CHECKER_MUTANTS=$(FUZZ_MUTANTS) $(PYTHON) -B tests/python/test_second_checker.py
	@BUILD=$(BUILD) SAMPLES=all $(PYTHON) tests/run --only unit sampled

# Benchmarks' own programs.
$(BUILD)/bench/%: $(BUILD)/tests/bench/%.o $(LIBPLANRT) $(LIBPLANC)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) $(EXTRA_CFLAGS) -o $@ $^ $(LIBS)

# planc that counts its work, as it is installed: without assertions. Packing is not counted: that has a limit of its
# own, so many visits for each item, and below the limit it would hide how the rest grows.
COUNTED = $(BUILD)/counted
PACKING = planner/memory/placement.c planner/memory/packed.c
COUNTED_CALLS = memcpy memmove memset calloc realloc
$(COUNTED)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(filter-out -g,$(ALL_CFLAGS)) -DNDEBUG $(foreach f,$(COUNTED_CALLS),-D$(f)=counted_$(f)) -fsanitize-coverage=trace-pc -MMD -MP -c -o $@ $<
$(COUNTED)/planc: $(patsubst %.c,$(COUNTED)/%.o,$(filter-out $(PACKING),$(PLANC_SRC) $(PLANC_LIB_SRC))) \
		$(call obj,$(PACKING) tests/bench/counter.c)
	$(CC) $(LDFLAGS) $(EXTRA_CFLAGS) -o $@ $^ -lyaml -lcjson -lm

$(BUILD)/bench/mutants: $(call obj,tests/support/mutate.c tests/support/mutate_tables.c tests/support/randparts.c)

bench: build $(BUILD)/bench/interpreter_cost $(BUILD)/bench/mutants $(BUILD)/bench/eq3_rounds $(BUILD)/bench/pair_speeds $(COUNTED)/planc
	@tests/deps valgrind
	@failed=0; for bench in tests/bench/bench_*; do BUILD=$(BUILD) $$bench || failed=1; done; exit $$failed

lint:
	@BUILD=$(BUILD) tests/lint

asan:
	+@$(MAKE_ALL) BUILD=$(BUILD)-asan EXTRA_CFLAGS="-fsanitize=address,undefined -fno-sanitize-recover=all" build unit
	@BUILD=$(BUILD)-asan ASAN_OPTIONS=allocator_may_return_null=1:handle_segv=0 $(PYTHON) tests/run --only unit golden
# What runs on several threads, under the thread sanitizer; the other tests have one thread each.
tsan:
	+@$(MAKE_ALL) BUILD=$(BUILD)-tsan EXTRA_CFLAGS="-fsanitize=thread" build unit
	@BUILD=$(BUILD)-tsan TSAN_OPTIONS=handle_segv=0:allocator_may_return_null=1 $(PYTHON) tests/run --only threads
# LeNet's training under valgrind, which knows no AVX-512.
memcheck: build
	@tests/deps valgrind
	$(BUILD)/planc plan graphs/lenet-digits.yaml --budget 400K -o $(BUILD)/memcheck.plan
	ONEDNN_MAX_CPU_ISA=AVX2 valgrind -q --error-exitcode=9 --leak-check=full $(BUILD)/planrun exec $(BUILD)/memcheck.plan \
		--data tests/data/digits/digits.csv.gz --iterations 2 --verify

# --- Installing ------------------------------------------------------------------------------------------------------

TO = $(DESTDIR)$(PREFIX)
VERSION = $(shell sed -n 's/^\#define PLANC_VERSION "\(.*\)"/\1/p' include/planc/version.h)

# Programs and libraries without assertions: library code never aborts whom it works for.
RELEASE = $(BUILD)/release
plain:
	+@$(MAKE_ALL) $(call obj,$(filter-out $(ASSERTING),$(PLANC_SRC) $(PLANC_LIB_SRC) $(PLANRUN_SRC) $(RT_LIB_SRC)))
release: plain
	+@$(MAKE_ALL) BUILD=$(RELEASE) PLAIN=$(BUILD) EXTRA_CFLAGS="$(EXTRA_CFLAGS) -DNDEBUG" build
	@! nm $(RELEASE)/*.a $(RELEASE)/*.so | grep -q __assert_fail || { echo "an assertion in a release" >&2; exit 1; }
# No two make the same objects at once.
plain: $(filter build,$(MAKECMDGOALS))

# What exports PyTorch modules, and what planc_torch takes of it.
EXPORTER = export_torch from_recording aten_types graphfile recording torch_as_on_gpu torch_costs torch_profile torch_recorder torch_refusals
install: release
	install -d $(TO)/bin $(TO)/lib/pkgconfig $(TO)/include/planc $(TO)/include/planrt $(TO)/share/planc/profiles \
		$(TO)/share/man/man1 $(TO)/share/man/man5 $(TO)/share/planc/python/planc_torch/graphs $(TO)/share/planc/python/planc_torch/examples
	install $(RELEASE)/planc $(RELEASE)/planrun $(TO)/bin
	install -m 644 $(RELEASE)/libplanrt-follow.so $(TO)/lib
	install -m 644 $(RELEASE)/libplanc.a $(RELEASE)/libplanrt.a $(TO)/lib
	install -m 644 include/planc/*.h $(TO)/include/planc
	install -m 644 include/planrt/*.h $(TO)/include/planrt
	install -m 644 profiles/*.json $(TO)/share/planc/profiles
	install -m 644 runtime/torch/planc_torch/*.py $(TO)/share/planc/python/planc_torch
	for file in $(wildcard $(BUILD)/plain_calls-*.so); do install -m 644 $$file $(TO)/share/planc/python/planc_torch || exit 1; done
	install -m 644 runtime/torch/planc_torch/examples/*.py $(TO)/share/planc/python/planc_torch/examples
	install -m 644 $(EXPORTER:%=graphs/%.py) $(TO)/share/planc/python/planc_torch/graphs
	install -m 644 man/*.1 $(TO)/share/man/man1
	install -m 644 man/*.5 $(TO)/share/man/man5
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(VERSION)|' src/planc.pc.in > $(TO)/lib/pkgconfig/planc.pc

uninstall:
	rm -f $(TO)/bin/planc $(TO)/bin/planrun $(TO)/lib/libplanc.a $(TO)/lib/libplanrt.a $(TO)/lib/libplanrt-follow.so $(TO)/lib/pkgconfig/planc.pc \
		$(patsubst man/%.1,$(TO)/share/man/man1/%.1,$(wildcard man/*.1)) \
		$(patsubst man/%.5,$(TO)/share/man/man5/%.5,$(wildcard man/*.5))
	rm -rf $(TO)/include/planc $(TO)/include/planrt $(TO)/share/planc

clean:
	rm -rf $(BUILD) $(BUILD)-asan $(BUILD)-tsan $(BUILD)-fuzz

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
