# hopper-run, and the stand-ins for NVIDIA's libraries with which it starts a program.

RUNNER := $(BUILD)/runner
HOPPER_RUN := $(BIN)hopper-run
# The flags' last word counts: what a stand-in shows is up to its list of names.
RUNNER_CFLAGS := $(ALL_CFLAGS) -fvisibility=default -Wno-deprecated-declarations
CORE_OBJECTS := $(patsubst common/%.c,$(RUNNER)/%.o,common/runner/core.c common/runner/report.c common/runner/fatbin.c \
  $(wildcard common/runner/driver/*.c))
RUNTIME_SOURCES := $(wildcard common/runner/runtime/*.c)
CORE_PARTS := $(call objects,common/emulator/*/*.c common/harness/counters.c common/harness/listing.c)
# cuBLAS and NVRTC are part of most toolkits, and not of the wheel that deps.sh installs.
NVRTC := $(and $(wildcard $(CUDA)/include/nvrtc.h),$(wildcard $(CUDA)/lib*/libnvrtc.so))
BLAS := $(if $(wildcard $(CUDA)/include/cublasLt.h /usr/include/cublasLt.h),cublas cublasLt)
STAND_INS := $(RUNNER)/libcuda.so.1 $(foreach release,12 13,$(patsubst %,$(RUNNER)/lib%.so.$(release),cudart $(BLAS)))
# The stand-ins for programs, and what Python loads, which lie beside the libraries.
TOOLS := $(patsubst common/runner/%,$(RUNNER)/%,$(wildcard common/runner/tools/*))
MODULES := $(patsubst common/runner/%,$(RUNNER)/%,$(wildcard common/runner/python/*.py))

$(HOPPER_RUN): $(call objects,$(addprefix common/runner/,hopper_run.c prepare.c elf.c)) $(TOOLS) $(MODULES) | $(STAND_INS)
	$(call say,LD $@)
	@mkdir -p $(@D)
	$Q$(CC) $(ALL_CFLAGS) $(filter %.o,$^) -o $@
$(BUILD)/common/runner/hopper_run.o: ALL_CFLAGS += -DSTAND_INS='"$(if $(filter ./,$(BIN)),$(RUNNER),../runner)"'

$(RUNNER)/tools/%: common/runner/tools/%
	@mkdir -p $(@D)
	$Qinstall $< $@
$(RUNNER)/python/%: common/runner/python/%
	@mkdir -p $(@D)
	$Qinstall -m 644 $< $@

$(RUNNER)/%.o: common/%.c $(BUILD)/flags common/build/runner.mk | build/have/nvcc
	$(call say,CC $<)
	@mkdir -p $(@D)
	$Q$(CC) $(RUNNER_CFLAGS) $(INCLUDE) $(CUDA_INCLUDE) -MMD -MP -c $< -o $@

$(RUNNER)/libcuda.so.1: $(CORE_OBJECTS) $(CORE_PARTS) common/runner/exports.sh common/runner/libcuda.names
	$(call say,LD $@)
	$Qsh common/runner/exports.sh common/runner/libcuda.names all - core_missing $(RUNNER)/libcuda $(CORE_OBJECTS)
	$Q$(CC) $(RUNNER_CFLAGS) -shared -Wl,-soname,libcuda.so.1 -Wl,--version-script=$(RUNNER)/libcuda.map \
	  $(RUNNER)/libcuda.c $(CORE_OBJECTS) $(CORE_PARTS) $(LIBS) -o $@

# $(call RUNTIME,12): the runtime of that release.
define RUNTIME
$(RUNNER)/cudart-$1/%.o: common/runner/runtime/%.c $(BUILD)/flags common/build/runner.mk | build/have/nvcc
	$$(call say,CC $$< for CUDA $1)
	@mkdir -p $$(@D)
	$$Q$$(CC) $$(RUNNER_CFLAGS) $$(INCLUDE) $$(CUDA_INCLUDE) -DRUNTIME=$1 -MMD -MP -c $$< -o $$@
$(RUNNER)/libcudart.so.$1: $(patsubst common/runner/runtime/%.c,$(RUNNER)/cudart-$1/%.o,$(RUNTIME_SOURCES)) \
    common/runner/exports.sh common/runner/libcudart.names $(RUNNER)/libcuda.so.1
	$$(call say,LD $$@)
	$$Qsh common/runner/exports.sh common/runner/libcudart.names $1 libcudart.so.$1 runtime_missing \
	  $(RUNNER)/libcudart-$1 $$(filter %.o,$$^)
	$$Q$$(CC) $$(RUNNER_CFLAGS) -shared -Wl,-soname,libcudart.so.$1 \
	  -Wl,--version-script=$(RUNNER)/libcudart-$1.map -Wl,-rpath,'$$$$ORIGIN' $(RUNNER)/libcudart-$1.c \
	  $$(filter %.o,$$^) $(RUNNER)/libcuda.so.1 -o $$@
	@mkdir -p $(RUNNER)/link-$1
	@ln -sf ../libcudart.so.$1 $(RUNNER)/link-$1/libcudart.so
	@ln -sf ../libcuda.so.1 $(RUNNER)/link-$1/libcuda.so
endef
$(foreach release,12 13,$(eval $(call RUNTIME,$(release))))

# $(call BLAS_OF,cublas,12): cuBLAS' functions are the same in both releases; the files' names and versions differ.
define BLAS_OF
$(RUNNER)/lib$1.so.$2: $(RUNNER)/runner/blas/$(shell echo $1 | tr A-Z a-z).o $(RUNNER)/runner/blas/matrix.o \
    $(if $(filter cublas,$1),$(RUNNER)/runner/blas/triangular.o) $(BUILD)/common/emulator/tensor/tensor_core.o \
    common/runner/exports.sh common/runner/lib$1.names $(RUNNER)/libcuda.so.1
	$$(call say,LD $$@)
	$$Qsh common/runner/exports.sh common/runner/lib$1.names $2 lib$1.so.$2 blas_missing $(RUNNER)/lib$1-$2 \
	  $$(filter %.o,$$^)
	$$Q$$(CC) $$(RUNNER_CFLAGS) -shared -Wl,-soname,lib$1.so.$2 -Wl,--version-script=$(RUNNER)/lib$1-$2.map \
	  -Wl,-rpath,'$$$$ORIGIN' $(RUNNER)/lib$1-$2.c $$(filter %.o,$$^) $(RUNNER)/libcuda.so.1 -lm -o $$@
endef
$(foreach release,12 13,$(foreach name,$(BLAS),$(eval $(call BLAS_OF,$(name),$(release)))))

# ---- one file of CUDA: make run FILE=my.cu ----

# What hopper-run wants of a program: PTX inside, and the shared runtime. nvcc finds the stand-in of its own release first.
# The wheel's is known before it is there.
NVCC_RELEASE = $(if $(filter $(WHEEL),$(NVCC)),13,$(shell $(NVCC) --version 2>/dev/null | \
  sed -n 's/.*release \([0-9]*\).*/\1/p'))
RUN_FLAGS = -O3 -std=c++17 -lineinfo -gencode arch=compute_90a,code=compute_90a -cudart shared
RUN_LIBRARIES = -L$(RUNNER)/link-$(NVCC_RELEASE) -lcuda
RUN_PROGRAM = build/run/$(basename $(notdir $(FILE)))

run_file: $(HOPPER_RUN) | build/have/nvcc
	@[ "$(FILE)" ] || { echo 'make run: which file? make run FILE=my.cu [OPTIONS=...] [ARGS=...]' >&2; exit 2; }
	@[ -f "$(FILE)" ] || { echo 'make run: there is no file $(FILE)' >&2; exit 2; }
	@mkdir -p build/run
	$Q$(NVCC) $(RUN_FLAGS) $(NVCC_FLAGS) $(FILE) $(RUN_LIBRARIES) -o $(RUN_PROGRAM)
	@$(HOPPER_RUN) $(OPTIONS) $(RUN_PROGRAM) $(ARGS)
.PHONY: run_file

# ---- the programs of the tests ----

RUNNER_TESTS := $(RUNNER)/tests
RUNNER_PROGRAMS := $(patsubst tests/runner/%.cu,$(RUNNER_TESTS)/%,$(filter-out %/needs_gpu.cu $(if $(BLAS),,%/blas.cu) $(if $(NVRTC),,%/nvrtc.cu) $(if $(filter 13,$(NVCC_RELEASE)),,%/conditional.cu),$(wildcard tests/runner/*.cu))) \
  $(addprefix $(RUNNER_TESTS)/,decode driver driver-nvcc streams-12 launches-12 memory-rdc library static no-ptx \
  linked linked-by-ld linked-missing-variable linked-missing-function linked-twice decoy/libcudart.so.$(NVCC_RELEASE) $(if $(BLAS),libuses_cublas.so))

define TEST_PROGRAM
$(call say,NVCC $@)
@mkdir -p $(@D)
$Q$(NVCC) $(RUN_FLAGS) $(TEST_FLAGS) $< $(RUN_LIBRARIES) -o $@
endef
$(RUNNER_TESTS)/%: tests/runner/%.cu $(wildcard tests/runner/*.h) | build/have/nvcc $(STAND_INS)
	$(TEST_PROGRAM)
# The example of notes/generating.md, which uses the stages as a library.
$(RUNNER_TESTS)/decode: TEST_FLAGS = -Icommon/library -L$(BIN) -lhopper_ladder -Xlinker -rpath='$$ORIGIN/../../../$(BIN)'
$(RUNNER_TESTS)/decode: examples/decode.cu common/library/hopper_ladder.h $(LADDER) | build/have/nvcc $(STAND_INS)
	$(TEST_PROGRAM)
$(RUNNER_TESTS)/blas: TEST_FLAGS = -lcublas -lcublasLt
$(RUNNER_TESTS)/nvrtc: TEST_FLAGS = -lnvrtc
$(RUNNER_TESTS)/conditional: TEST_FLAGS = -rdc=true
# The same with the runtime of CUDA 12, and compressed as its nvcc does. That of CUDA 13 can still do it.
$(RUNNER_TESTS)/%-12: RUN_LIBRARIES = -L$(RUNNER)/link-12 -lcuda
$(RUNNER_TESTS)/%-12: TEST_FLAGS = $(if $(filter 13,$(NVCC_RELEASE)),--compress-mode=speed)
$(RUNNER_TESTS)/%-12: tests/runner/%.cu $(wildcard tests/runner/*.h) | build/have/nvcc $(STAND_INS)
	$(TEST_PROGRAM)
# Compiled to be linked with other files of device code.
$(RUNNER_TESTS)/%-rdc: TEST_FLAGS = -rdc=true
$(RUNNER_TESTS)/%-rdc: tests/runner/%.cu $(wildcard tests/runner/*.h) | build/have/nvcc $(STAND_INS)
	$(TEST_PROGRAM)
# A program of three files of device code, of which one is a library. nvcc links it; or nvcc -dlink and then the host's linker;
# or with a mistake.
LINKED := $(RUNNER_TESTS)/linked-parts
LINKED_FLAGS = $(filter-out -cudart shared,$(RUN_FLAGS)) -rdc=true
$(LINKED)/main-missing-variable.o: TEST_FLAGS = -DMISSING_VARIABLE
$(LINKED)/main-missing-function.o: TEST_FLAGS = -DMISSING_FUNCTION
$(LINKED)/main-twice.o $(LINKED)/part-twice.o: TEST_FLAGS = -DTWICE
define LINKED_PART
$(call say,NVCC $@)
@mkdir -p $(@D)
$Q$(NVCC) $(LINKED_FLAGS) $(TEST_FLAGS) -c $< -o $@
endef
LINKED_HEADERS := tests/runner/linked/part.h tests/runner/check.h tests/runner/expect.h
$(LINKED)/main-%.o: tests/runner/linked/main.cu $(LINKED_HEADERS) | build/have/nvcc
	$(LINKED_PART)
$(LINKED)/part-%.o: tests/runner/linked/part.cu $(LINKED_HEADERS) | build/have/nvcc
	$(LINKED_PART)
$(LINKED)/library.o: tests/runner/linked/library.cu | build/have/nvcc
	$(LINKED_PART)
$(LINKED)/libdevice-code.a: $(LINKED)/library.o
	$Q$(NVCC) -lib $< -o $@
LINKED_PROGRAM = $Q$(NVCC) $(RUN_FLAGS) -rdc=true $(filter %.o %.a,$^) $(RUN_LIBRARIES) -o $@
$(RUNNER_TESTS)/linked: $(LINKED)/main-right.o $(LINKED)/part-right.o $(LINKED)/libdevice-code.a | $(STAND_INS)
	$(LINKED_PROGRAM)
$(RUNNER_TESTS)/linked-missing-variable $(RUNNER_TESTS)/linked-missing-function: $(RUNNER_TESTS)/linked-%: \
    $(LINKED)/main-%.o $(LINKED)/part-right.o $(LINKED)/libdevice-code.a | $(STAND_INS)
	$(LINKED_PROGRAM)
$(RUNNER_TESTS)/linked-twice: $(LINKED)/main-twice.o $(LINKED)/part-twice.o $(LINKED)/libdevice-code.a | $(STAND_INS)
	$(LINKED_PROGRAM)
$(RUNNER_TESTS)/linked-by-ld: $(LINKED)/main-right.o $(LINKED)/part-right.o $(LINKED)/libdevice-code.a | $(STAND_INS)
	$Q$(NVCC) $(LINKED_FLAGS) -dlink $^ -o $(LINKED)/device-code.o
	$Q$(CC) $(LINKED)/main-right.o $(LINKED)/part-right.o $(LINKED)/device-code.o $(LINKED)/libdevice-code.a \
	  -L$(RUNNER)/link-$(NVCC_RELEASE) -lcudart -lcuda -lstdc++ $(firstword $(wildcard $(CUDA)/lib*/libcudadevrt.a)) -o $@
# An RPATH that leads to a library of the runtime's name which has nothing in it.
$(RUNNER_TESTS)/streams: TEST_FLAGS = -Xlinker --disable-new-dtags -Xlinker -rpath='$$ORIGIN/decoy'
# A library of which the same is true for cuBLAS.
$(RUNNER_TESTS)/libuses_cublas.so: tests/runner/uses_cublas.c $(RUNNER_TESTS)/decoy/libcublas.so.$(NVCC_RELEASE) | $(STAND_INS)
	$(call say,CC $<)
	@$(CC) $(CUDA_INCLUDE) -std=c11 -shared -fPIC $< $(RUNNER)/libcublas.so.$(NVCC_RELEASE) -Wl,--disable-new-dtags \
	  -Wl,-rpath,'$$ORIGIN/decoy' -o $@
$(RUNNER_TESTS)/decoy/%:
	@mkdir -p $(@D)
	@echo | $(CC) -shared -x c - -Wl,-soname,$* -o $@
$(RUNNER_TESTS)/static: RUN_FLAGS = -cudart static
$(RUNNER_TESTS)/static: RUN_LIBRARIES =
$(RUNNER_TESTS)/static: tests/runner/faults.cu | build/have/nvcc
	$(TEST_PROGRAM)
$(RUNNER_TESTS)/no-ptx: RUN_FLAGS = -std=c++17 -gencode arch=compute_90a,code=sm_90a -cudart shared
$(RUNNER_TESTS)/no-ptx: tests/runner/faults.cu | build/have/nvcc $(STAND_INS)
	$(TEST_PROGRAM)
$(RUNNER_TESTS)/driver: tests/runner/driver.c tests/runner/expect.h | $(STAND_INS)
	$(call say,CC $<)
	@mkdir -p $(@D)
	$Q$(CC) $(CUDA_INCLUDE) -std=c11 $< $(RUNNER)/libcuda.so.1 -o $@
# The same, linked by nvcc: with an empty fatbin, and without the runtime, which -O2 leaves out where nothing needs it.
$(RUNNER_TESTS)/driver-nvcc: TEST_FLAGS = $(CUDA_INCLUDE)
$(RUNNER_TESTS)/driver-nvcc: RUN_FLAGS = -O2 -gencode arch=compute_90a,code=compute_90a -cudart shared
$(RUNNER_TESTS)/driver-nvcc: tests/runner/driver.c tests/runner/expect.h | build/have/nvcc $(STAND_INS)
	$(TEST_PROGRAM)
# A library that is linked with the static runtime, as cuBLAS is, and a program that calls it.
$(RUNNER_TESTS)/library: tests/runner/library.c $(RUNNER_TESTS)/libneeds_gpu.so
	@$(CC) -std=c11 $< -L$(RUNNER_TESTS) -lneeds_gpu -Wl,-rpath,'$$ORIGIN' -o $@
$(RUNNER_TESTS)/libneeds_gpu.so: RUN_FLAGS = -cudart static -shared -Xcompiler -fPIC
$(RUNNER_TESTS)/libneeds_gpu.so: RUN_LIBRARIES =
$(RUNNER_TESTS)/libneeds_gpu.so: tests/runner/needs_gpu.cu | build/have/nvcc
	$(TEST_PROGRAM)
