# The compilers, their flags, and how C becomes objects and CUDA becomes PTX.

# The nvcc in CUDA_HOME, else the one on PATH, else the one that deps.sh puts into build/cuda.
WHEEL := build/cuda/nvidia/cu13/bin/nvcc
NVCC ?= $(firstword $(if $(CUDA_HOME),$(wildcard $(CUDA_HOME)/bin/nvcc)) $(shell command -v nvcc 2>/dev/null) $(WHEEL))
CUDA := $(patsubst %/bin/,%,$(dir $(or $(filter $(WHEEL),$(NVCC)),$(realpath $(NVCC)),$(NVCC))))
NVDISASM = $(firstword $(wildcard $(CUDA)/bin/nvdisasm) $(shell command -v nvdisasm) \
  build/cuda-nvdisasm/nvidia/cu13/bin/nvdisasm)

# The emulator views a register as several types, and rounds as the GPU does: no multiply-add is fused unasked.
# No symbol of a program may stand in for one of a library that it loads: the driver and its tools bring many.
# An object is compiled once, for programs and for libraries: position-independent. common/emulator/Makefile compiles the
# emulator by itself, with the same flags.
WARNINGS := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes $(if $(WERROR),-Werror)
ALL_CFLAGS := -std=c11 -D_DEFAULT_SOURCE -fPIC -fvisibility=hidden $(WARNINGS) -march=$(ARCH) -pthread -fno-strict-aliasing \
  -ffp-contract=off $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-sanitize-recover=all) $(CFLAGS)
INCLUDE := -Icommon
CUDA_INCLUDE := -isystem $(CUDA)/include $(addprefix -isystem ,$(wildcard $(CUDA)/targets/*/include))
LIBS := -lm -ldl -pthread
KERNEL_FLAGS := -Icommon -gencode arch=compute_90a,code=compute_90a -O3 -lineinfo $(if $(WERROR),-Werror all-warnings)

objects = $(patsubst %.c,$(BUILD)/%.o,$(wildcard $1))
LIBRARY := $(BUILD)/libhopper.a
MAIN := $(call objects,common/harness/main.c)
MEMBERS := $(filter-out $(MAIN),$(call objects,common/emulator/*/*.c common/device/*.c common/harness/*.c))

Q := $(if $(V),,@)
say = $(if $(V),,@echo '  $1')
# A disk that is full or a tree that is read-only would fail in every line below. make -n and make -q write nothing, not
# even to find that out.
dry := $(findstring n,$(firstword -$(MAKEFLAGS)))$(findstring q,$(firstword -$(MAKEFLAGS)))
ifeq ($(filter help,$(or $(MAKECMDGOALS),help))$(dry),)
ifneq ($(shell { mkdir -p $(BUILD) && f=$(BUILD)/writable-$$$$ && echo yes >$$f && cat $$f && rm $$f; } 2>&-),yes)
$(error $(BUILD) cannot be written: the disk is full, the tree is read-only, or something else has that name)
endif
endif

# $(eval $(call remember,FILE,SETTING)): the file is made only when the setting has changed, and targets can depend on it.
define remember
$1: $(if $(filter same,$(shell echo '$2' | cmp -s - $1 && echo same)),,changed)
	@mkdir -p $$(@D) && echo '$2' >$$@
endef
.PHONY: changed
# Without -Werror: it changes nothing of what is built.
$(eval $(call remember,$(BUILD)/flags,$(CC) $(filter-out -Werror,$(ALL_CFLAGS) $(INCLUDE))))
$(eval $(call remember,$(BUILD)/members,$(MEMBERS)))
$(eval $(call remember,build/nvcc-flags,$(NVCC) $(filter-out -Werror all-warnings,$(KERNEL_FLAGS))))

# The C files that include CUDA's headers. No other needs nvcc.
WITH_CUDA := $(addprefix $(BUILD)/,common/device/gpu.o tests/test_driver.o tests/test_cuda12.o tests/cuda/nvrtc.o)
$(WITH_CUDA): INCLUDE += $(CUDA_INCLUDE)
$(WITH_CUDA): build/nvcc-flags | build/have/nvcc
$(BUILD)/%.o: %.c $(BUILD)/flags
	$(call say,CC $<)
	@mkdir -p $(@D)
	$Q$(CC) $(ALL_CFLAGS) $(INCLUDE) -MMD -MP -c $< -o $@
$(BUILD)/common/harness/recorded.o: plots/data/nvidia-h200.csv
$(LIBRARY): $(MEMBERS) $(BUILD)/members
	@rm -f $@
	$Qar rcs $@ $(MEMBERS)

# Source paths inside the PTX become relative to the repository: reports stay short, and builds the same anywhere.
define PTX
$(call say,PTX $<)
@mkdir -p $(@D)
$Q$(NVCC) $(KERNEL_FLAGS) $(NVCC_DEFINES) -MMD -MP -MF $@.d -MT $@ -ptx $< -o $@.whole
@awk -f common/build/relative.awk $< $@.whole $@.whole >$@ && rm $@.whole
endef
# ptxas mentions a spill, a stack frame or a serialised wgmma and goes on. Here each fails unless ALLOWED names it.
define CUBIN
$(call say,PTXAS $<)
$Qsh common/build/ptxas.sh $(NVCC) $< $@ $(ALLOWED)
endef

# Each installs what is missing. Targets wait for a file in build/have, so that it is looked for once.
.PHONY: nvcc criterion gnuplot nvdisasm emscripten
DEPS = CC="$(CC)" sh common/build/deps.sh $1 $(if $(filter $(WHEEL),$(NVCC)),build/cuda)
nvcc criterion gnuplot emscripten:
	@$(call DEPS,$@)
build/have/nvcc: | $(filter $(WHEEL),$(NVCC))
build/have/%:
	@$(call DEPS,$*) && mkdir -p $(@D) && touch $@
$(WHEEL):
	@$(call DEPS,nvcc)
nvdisasm:
	@$(if $(filter build/%,$(NVDISASM)),sh common/build/deps.sh nvdisasm build/cuda-nvdisasm)

# The commit of the checkout $1, with a + where its folder $2 differs; "unknown" where git does not know it.
checkout_commit = $(shell cd "$1" && commit=$$(git rev-parse --short=12 HEAD 2>/dev/null) && \
  { git diff --quiet HEAD -- $2 || commit=$$commit+; } && echo $$commit || echo unknown)
