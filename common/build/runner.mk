# hopper-run, and the stand-ins for NVIDIA's libraries with which it starts a program.

RUNNER := $(BUILD)/runner
HOPPER_RUN := $(BIN)hopper-run
# The flags' last word counts: what a stand-in shows is up to its list of names.
RUNNER_CFLAGS := $(ALL_CFLAGS) -fPIC -fvisibility=default -Wno-deprecated-declarations
CORE_OBJECTS := $(patsubst common/%.c,$(RUNNER)/%.o,common/runner/core.c common/runner/report.c common/runner/fatbin.c \
  $(wildcard common/runner/driver/*.c))
RUNTIME_SOURCES := $(wildcard common/runner/runtime/*.c)
CORE_PARTS := $(patsubst $(BUILD)/%,$(PIC)/%, \
  $(call objects,common/emulator/*/*.c common/harness/counters.c common/harness/listing.c))
# cuBLAS is part of most toolkits, and not of the wheel that deps.sh installs.
BLAS := $(if $(wildcard $(CUDA)/include/cublasLt.h /usr/include/cublasLt.h),cublas cublasLt)
STAND_INS := $(RUNNER)/libcuda.so.1 $(foreach release,12 13,$(patsubst %,$(RUNNER)/lib%.so.$(release),cudart $(BLAS)))

$(HOPPER_RUN): $(call objects,common/runner/hopper_run.c common/runner/elf.c) | $(STAND_INS)
	$(call say,LD $@)
	@mkdir -p $(@D)
	$Q$(CC) $(ALL_CFLAGS) $^ -o $@
$(BUILD)/common/runner/hopper_run.o: ALL_CFLAGS += -DSTAND_INS='"$(if $(filter ./,$(BIN)),$(RUNNER),../runner)"'

$(RUNNER)/%.o: common/%.c $(BUILD)/flags common/build/runner.mk | nvcc
	$(call say,CC $<)
	@mkdir -p $(@D)
	$Q$(CC) $(RUNNER_CFLAGS) $(INCLUDE) -MMD -MP -c $< -o $@

$(RUNNER)/libcuda.so.1: $(CORE_OBJECTS) $(CORE_PARTS) common/runner/exports.sh common/runner/libcuda.names
	$(call say,LD $@)
	$Qsh common/runner/exports.sh common/runner/libcuda.names all - core_missing $(RUNNER)/libcuda $(CORE_OBJECTS)
	$Q$(CC) $(RUNNER_CFLAGS) -shared -Wl,-soname,libcuda.so.1 -Wl,--version-script=$(RUNNER)/libcuda.map \
	  $(RUNNER)/libcuda.c $(CORE_OBJECTS) $(CORE_PARTS) $(LIBS) -o $@

# $(call RUNTIME,12): the runtime of that release.
define RUNTIME
$(RUNNER)/cudart-$1/%.o: common/runner/runtime/%.c $(BUILD)/flags common/build/runner.mk | nvcc
	$$(call say,CC $$< for CUDA $1)
	@mkdir -p $$(@D)
	$$Q$$(CC) $$(RUNNER_CFLAGS) $$(INCLUDE) -DRUNTIME=$1 -MMD -MP -c $$< -o $$@
$(RUNNER)/libcudart.so.$1: $(patsubst common/runner/runtime/%.c,$(RUNNER)/cudart-$1/%.o,$(RUNTIME_SOURCES)) \
    common/runner/exports.sh common/runner/libcudart.names $(RUNNER)/libcuda.so.1
	$$(call say,LD $$@)
	$$Qsh common/runner/exports.sh common/runner/libcudart.names $1 libcudart.so.$1 runtime_missing \
	  $(RUNNER)/libcudart-$1 $$(filter %.o,$$^)
	$$Q$$(CC) $$(RUNNER_CFLAGS) -shared -Wl,-soname,libcudart.so.$1 \
	  -Wl,--version-script=$(RUNNER)/libcudart-$1.map -Wl,-rpath,'$$$$ORIGIN' $(RUNNER)/libcudart-$1.c \
	  $$(filter %.o,$$^) $(RUNNER)/libcuda.so.1 -o $$@
endef
$(foreach release,12 13,$(eval $(call RUNTIME,$(release))))

# $(call BLAS_OF,cublas,12): cuBLAS' functions are the same in both releases; the files' names and versions differ.
define BLAS_OF
$(RUNNER)/lib$1.so.$2: $(RUNNER)/runner/blas/$(shell echo $1 | tr A-Z a-z).o $(RUNNER)/runner/blas/matrix.o \
    common/runner/exports.sh common/runner/lib$1.names $(RUNNER)/libcuda.so.1
	$$(call say,LD $$@)
	$$Qsh common/runner/exports.sh common/runner/lib$1.names $2 lib$1.so.$2 blas_missing $(RUNNER)/lib$1-$2 \
	  $$(filter %.o,$$^)
	$$Q$$(CC) $$(RUNNER_CFLAGS) -shared -Wl,-soname,lib$1.so.$2 -Wl,--version-script=$(RUNNER)/lib$1-$2.map \
	  -Wl,-rpath,'$$$$ORIGIN' $(RUNNER)/lib$1-$2.c $$(filter %.o,$$^) $(RUNNER)/libcuda.so.1 -lm -o $$@
endef
$(foreach release,12 13,$(foreach name,$(BLAS),$(eval $(call BLAS_OF,$(name),$(release)))))
