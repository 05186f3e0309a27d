# What the tests need, and how they are run.

TEST_OBJECTS := $(call objects,tests/test_*.c tests/support/*.c)
COUNTERS_PTX := build/counters/patterns.ptx
TEST_PTX := $(COUNTERS_PTX) build/ptx/rules.ptx $(patsubst tests/ptx/cuda/%.cu,build/ptx/%.ptx,$(wildcard tests/ptx/cuda/*.cu))
HAZARD_PTX := $(foreach f,$(wildcard tests/hazards/*.cu),$(patsubst tests/%.cu,build/%,$f).faulty.ptx \
  $(patsubst tests/%.cu,build/%,$f).repaired.ptx)
TRACE_PTX := $(TRACED:%=build/trace/%.ptx) build/unmarked/06-tma.ptx
GPU_KERNELS := $(patsubst tests/gpu/%.cu,build/gpu/%.cubin,$(wildcard tests/gpu/*.cu))
FAKE_DRIVER := $(BUILD)/driver/libcuda.so.1
# The race check with nothing but what it stands on. That it links is a test, too.
CHECK_TEST := $(BUILD)/test-order
CHECK_OBJECTS := $(call objects,tests/test_order.c tests/support/order_*.c common/emulator/check/*.c common/emulator/host/*.c)
TEST_NEEDS := $(if $(SANITIZE),,$(HOPPER_RUN) $(RUNNER_PROGRAMS) build/mathematics/sample $(BUILD)/libread.so) $(BUILD)/run-tests $(CHECK_TEST) $(FAKE_DRIVER) $(TEST_PTX) $(HAZARD_PTX) $(TRACE_PTX)
GPU_NEEDS := $(BUILD)/run-tests $(GPU_KERNELS) $(foreach name,$(TRACED),$(BUILD)/trace/trace-$(call number,$(name)))
BENCH_NEEDS := $(BUILD)/bench-emulator build/ptx/bench.ptx
FUZZERS := $(patsubst tests/fuzz/%.c,build/fuzz/%,$(wildcard tests/fuzz/*.c))
$(eval $(call remember,$(BUILD)/test-members,$(TEST_OBJECTS)))

# $(call run_tests,PATTERN,ROOT): ROOT is the repository, or a folder that looks like it and has other programs. Paths
# are relative to the repository, except two that are used in other folders.
run_tests = HL_ROOT=$2 PTX_DIR=build/ptx HAZARD_PTX_DIR=build/hazards COUNTERS_PTX=$(COUNTERS_PTX) BUILT=build RUNNER_TESTS=$(RUNNER_TESTS) \
  TRACE_PROGRAMS=$(BUILD)/trace TRACED="$(TRACED)" FAKE_DRIVER="$$PWD/$(FAKE_DRIVER)" \
  LSAN_OPTIONS="suppressions='$$PWD/common/build/leaks.supp':print_suppressions=0" $(BUILD)/run-tests --filter='$1'

$(BUILD)/run-tests: $(TEST_OBJECTS) $(LIBRARY) $(BUILD)/test-members
	$(call say,LD $@)
	$Q$(CC) $(ALL_CFLAGS) $(TEST_OBJECTS) $(LIBRARY) -lcriterion $(LIBS) -o $@
$(CHECK_TEST): $(CHECK_OBJECTS)
	$(call say,LD $@)
	$Q$(CC) $(ALL_CFLAGS) $^ -lcriterion $(LIBS) -o $@
$(TEST_OBJECTS): | build/have/criterion
$(FAKE_DRIVER): tests/driver/fake_driver.c tests/driver/fake_driver.h $(BUILD)/flags | build/have/nvcc
	$(call say,LD $@)
	@mkdir -p $(@D)
	$Q$(CC) $(ALL_CFLAGS) $(INCLUDE) $(CUDA_INCLUDE) -shared -Wl,-soname,libcuda.so.1 $< -o $@
$(BUILD)/nvrtc: $(BUILD)/tests/cuda/nvrtc.o
$(BUILD)/bench-emulator: $(BUILD)/tests/bench_emulator.o $(BUILD)/tests/support/workloads.o $(LIBRARY)
$(BUILD)/nvrtc $(BUILD)/bench-emulator:
	$(call say,LD $@)
	$Q$(CC) $(ALL_CFLAGS) $^ $(LIBS) -o $@
# libFuzzer comes with clang; the whole emulator is compiled for it at once.
build/fuzz/%: tests/fuzz/%.c $(wildcard common/emulator/*.h common/emulator/*/* common/harness/* common/device/*)
	$(call say,FUZZ $<)
	@mkdir -p $(@D)
	$Qclang -std=c11 -D_DEFAULT_SOURCE -g -O1 -fno-strict-aliasing -ffp-contract=off $(INCLUDE) $(CUDA_INCLUDE) \
	  -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all $< $(MEMBERS:$(BUILD)/%.o=%.c) $(LIBS) -o $@

# Computes on the GPU what tests/golden has, and the same by the model.
build/golden/record: common/emulator/tensor/tensor_core.c $(wildcard tests/golden/*.cu tests/golden/*.h) | build/have/nvcc
	$(call say,NVCC $@)
	@mkdir -p $(@D)
	$Q$(CC) -O2 -ffp-contract=off -c $< -o $@.o
	$Q$(NVCC) -O2 -std=c++17 -gencode arch=compute_90a,code=sm_90a -Icommon/emulator/tensor $(filter %.cu,$^) $@.o -o $@

# What the GPU does where a rule was open.
build/rules/record: $(wildcard tests/rules/*.cu tests/rules/*.h common/ptx/*.h) | build/have/nvcc
	$(call say,NVCC $@)
	@mkdir -p $(@D)
	$Q$(NVCC) -O3 -std=c++17 -gencode arch=compute_90a,code=sm_90a tests/rules/record.cu -o $@

# A kernel, and the headers that stages have for it, as if they had never had a time stamp. Stage 06 has all four kinds.
build/unmarked/%.ptx: build/unmarked/%.cu build/nvcc-flags | build/have/nvcc
	$(PTX)
build/unmarked/%.cu: stages/%/kernel.cu common/build/device_lines.awk $(wildcard stages/*/*.h)
	@mkdir -p $(@D)
	@awk -f common/build/device_lines.awk $< | sed '/^ *trace[a-z_]*(.*);$$/d; /ptx\/trace\.h/d; /^#pragma once/d' >$@
build/ptx/%.ptx: tests/ptx/cuda/%.cu build/nvcc-flags | build/have/nvcc
	$(PTX)
build/hazards/%.faulty.ptx: tests/hazards/%.cu build/nvcc-flags | build/have/nvcc
	$(PTX)
build/hazards/%.repaired.ptx: NVCC_DEFINES := -DREPAIRED
build/hazards/%.repaired.ptx: tests/hazards/%.cu build/nvcc-flags | build/have/nvcc
	$(PTX)
build/counters/%.ptx: tests/counters/%.cu build/nvcc-flags | build/have/nvcc
	$(PTX)
build/ptx/rules.ptx: tests/rules/kernels.cu build/nvcc-flags | build/have/nvcc
	$(PTX)
build/gpu/%.ptx: tests/gpu/%.cu build/nvcc-flags | build/have/nvcc
	$(PTX)
build/gpu/%.cubin: ALLOWED := stack serialised
build/gpu/%.cubin: build/gpu/%.ptx
	$(CUBIN)

# CUDA's mathematics, in programs that run on a GPU and on the emulator: tests/mathematics/README.md.
MATHEMATICS := approximate float float-fast double half half-fast bfloat16 bfloat16-fast integer conversion conversion-fast
MATHEMATICS_PROGRAMS := $(MATHEMATICS:%=build/mathematics/%)
MATHEMATICS_LINK = $(NVCC) $(RUN_FLAGS) $(MATHEMATICS_FLAGS) $(MATHEMATICS_FAST) $< build/mathematics/main.o -o $@
build/mathematics/main.o: tests/mathematics/main.cu $(wildcard tests/mathematics/*.cuh) | build/have/nvcc
	$(call say,NVCC $<)
	@mkdir -p $(@D)
	$Q$(NVCC) -O3 -std=c++17 -c $< -o $@
build/mathematics/%: tests/mathematics/%.cu build/mathematics/main.o $(wildcard tests/mathematics/*.cuh) | build/have/nvcc
	$(call say,NVCC $@)
	$Q$(MATHEMATICS_LINK)
build/mathematics/sample: $(wildcard tests/mathematics/*.cu)
build/mathematics/%-fast: MATHEMATICS_FAST := -use_fast_math -DFAST='"-fast"'
build/mathematics/%-fast: tests/mathematics/%.cu build/mathematics/main.o $(wildcard tests/mathematics/*.cuh) | build/have/nvcc
	$(call say,NVCC $@)
	$Q$(MATHEMATICS_LINK)
mathematics: $(MATHEMATICS_PROGRAMS)

# ---- make test-python: a virtual environment of its own, with versions that are pinned ----

PYTHON_REQUIREMENTS := tests/python/requirements.txt \
  $(if $(filter no,$(TORCH)),,tests/python/requirements-torch.txt) \
  $(if $(filter yes,$(PYCUDA)),tests/python/requirements-pycuda.txt)
$(eval $(call remember,build/python-requirements,$(PYTHON_REQUIREMENTS)))
build/python/packages: $(PYTHON_REQUIREMENTS) build/python-requirements
	@python3 -m venv build/python
	@# Python compiles what a program imports, which is far less than all.
	build/python/bin/pip install --quiet --disable-pip-version-check --no-compile --only-binary :all: \
	  $(addprefix -r ,$(PYTHON_REQUIREMENTS))
	@touch $@
