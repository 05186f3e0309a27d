# The stages, found from their folders, and the baselines: their kernels and their programs.

NAMES := $(notdir $(patsubst %/,%,$(sort $(wildcard stages/[0-9][0-9]*-*/))))
number = $(firstword $(subst -, ,$1))
NUMBERS := $(foreach name,$(NAMES),$(call number,$(name)))
BIN := $(if $(filter build,$(BUILD)),./,$(BUILD)/root/)# where the programs go: another BUILD has a root of its own
STAGES := $(NUMBERS:%=$(BIN)stage-%)
BASELINE_NAMES := $(patsubst common/baselines/%/stage.c,%,$(wildcard common/baselines/*/stage.c))
BASELINES := $(BASELINE_NAMES:%=$(BIN)baseline-%)
# Those whose kernels have time stamps, in kernel.cu or in a header of a stage.
TRACED := $(shell awk -v stamps=1 -f common/build/device_lines.awk $(NAMES:%=stages/%/kernel.cu) 2>/dev/null)

# A stage may have a stage.mk, which lists what ptxas may do there: ALLOW_NN-name := stack spills serialised. A word
# with a release, serialised-12.5, allows it for that release only, in test-cuda; refused-12.0: the release has not what
# the stage needs. A stage that goes on from another one than its neighbour has BELOW_NN-name := NN-name, for make diff.
-include $(wildcard stages/*/stage.mk)
$(eval $(call remember,build/allowed,$(foreach name,$(NAMES),$(name): $(ALLOW_$(name)))))

# A program with a stage: $(call PROGRAM,PROGRAM,FOLDER,KERNELS). FOLDER has its C files, KERNELS the object of its
# kernels.
define PROGRAM
$1: $(call objects,$2/*.c) $(BUILD)/$3/embed.o $(MAIN) $(LIBRARY)
	$$(call say,LD $$@)
	@mkdir -p $$(@D)
	$$Q$$(CC) $$(ALL_CFLAGS) $$^ $$(LIBS) -o $$@
endef
$(foreach name,$(NAMES),$(eval $(call PROGRAM,$(BIN:./%=%)stage-$(call number,$(name)),stages/$(name),stages/$(name))))
$(foreach name,$(NAMES),$(eval $(call \
  PROGRAM,$(BUILD)/trace/trace-$(call number,$(name)),stages/$(name),trace/$(name))))
$(foreach name,$(BASELINE_NAMES),$(eval $(call \
  PROGRAM,$(BIN:./%=%)baseline-$(name),common/baselines/$(name),common/baselines/$(name))))

define EMBED
@mkdir -p $(@D)
$Q$(CC) -c $(RENAMED) $(patsubst %,-DSTAGE_PTX='"%"',$(filter %.ptx,$^)) \
  $(patsubst %,-DSTAGE_CUBIN='"%"',$(filter %.cubin,$^)) $< -o $@
endef
$(BUILD)/stages/%/embed.o: common/harness/embed.S build/kernels/%.ptx build/kernels/%.cubin
	$(EMBED)
$(BUILD)/common/baselines/%/embed.o: common/harness/embed.S build/kernels/baseline-%.ptx build/kernels/baseline-%.cubin
	$(EMBED)
$(BUILD)/trace/%/embed.o: common/harness/embed.S build/trace/%.ptx build/trace/%.cubin
	$(EMBED)

build/kernels/%.ptx: stages/%/kernel.cu build/nvcc-flags | build/have/nvcc
	$(PTX)
build/kernels/baseline-%.ptx: common/baselines/%/kernel.cu build/nvcc-flags | build/have/nvcc
	$(PTX)
build/kernels/%.cubin: ALLOWED = $(ALLOW_$*)
build/kernels/%.cubin: build/kernels/%.ptx common/build/ptxas.sh build/allowed
	$(CUBIN)

# The kernels with time stamps. Where the registers are full, a time stamp spills a few. ALLOW_TRACE_NN-name lists more.
build/trace/%.ptx: NVCC_DEFINES := -DTRACE
build/trace/%.ptx: stages/%/kernel.cu build/nvcc-flags | build/have/nvcc
	$(PTX)
build/trace/%.cubin: ALLOWED = $(ALLOW_$*) $(ALLOW_TRACE_$*) stack spills
build/trace/%.cubin: build/trace/%.ptx common/build/ptxas.sh build/allowed
	$(CUBIN)
