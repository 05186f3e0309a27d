# Hopper Ladder. `make help` lists what there is to type. Stages are found from the folders: adding stages/NN-name adds
# the target stage-NN, and common/baselines/NAME baseline-NAME. What is made goes to build/, except these programs and the
# library, which stand in the root. V=1 shows the commands.
#
#   kernel.cu --nvcc--> PTX --ptxas--> cubin     both embedded in ./stage-NN by embed.S
#   stage.c + libhopper.a (harness, device, emulator) --cc--> ./stage-NN

ARCH ?= native
BUILD ?= build
CFLAGS ?= -O2 -g
OPTIONS ?=
TESTS ?= *
FUZZ_SECONDS ?= 60
RELEASES ?= 11.8 12.0 12.1 12.2 12.3 12.4 12.5 12.6 12.8 12.9

NAMES := $(notdir $(patsubst %/,%,$(sort $(wildcard stages/[0-9][0-9]*-*/))))
number = $(firstword $(subst -, ,$1))
BIN := $(if $(filter build,$(BUILD)),./,$(BUILD)/root/)# where the programs go: another BUILD has a root of its own
NUMBERS := $(foreach name,$(NAMES),$(call number,$(name)))
STAGES := $(NUMBERS:%=$(BIN)stage-%)
LADDER := $(BIN)libhopper_ladder.so
BASELINE_NAMES := $(notdir $(patsubst %/,%,$(wildcard common/baselines/*/)))
BASELINES := $(BASELINE_NAMES:%=$(BIN)baseline-%)

# The nvcc in CUDA_HOME, else the one on PATH, else the one that deps.sh puts into build/cuda.
WHEEL := build/cuda/nvidia/cu13/bin/nvcc
NVCC ?= $(firstword $(if $(CUDA_HOME),$(wildcard $(CUDA_HOME)/bin/nvcc)) $(shell command -v nvcc 2>/dev/null) $(WHEEL))
CUDA := $(patsubst %/bin/,%,$(dir $(or $(realpath $(NVCC)),$(NVCC))))
NVDISASM = $(firstword $(wildcard $(CUDA)/bin/nvdisasm) $(shell command -v nvdisasm) \
  build/cuda-nvdisasm/nvidia/cu13/bin/nvdisasm)

# The emulator views a register as several types, and rounds as the GPU does: no multiply-add is fused unasked.
# No symbol of a program may stand in for one of a library that it loads: the driver and its tools bring many.
ALL_CFLAGS := -std=c11 -D_DEFAULT_SOURCE -fvisibility=hidden -Wall -Wextra -Werror -march=$(ARCH) -pthread -fno-strict-aliasing \
  -ffp-contract=off $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-sanitize-recover=all) $(CFLAGS)
INCLUDE := -Icommon -isystem $(CUDA)/include $(addprefix -isystem ,$(wildcard $(CUDA)/targets/*/include))
LIBS := -lm -ldl -pthread
NVCC_FLAGS := -Icommon -gencode arch=compute_90a,code=compute_90a -O3 -lineinfo -Werror all-warnings

objects = $(patsubst %.c,$(BUILD)/%.o,$(wildcard $1))
LIBRARY := $(BUILD)/libhopper.a
MAIN := $(call objects,common/harness/main.c)
MEMBERS := $(filter-out $(MAIN),$(call objects,common/emulator/*/*.c common/device/*.c common/harness/*.c))
TEST_OBJECTS := $(call objects,tests/test_*.c tests/support/*.c)
COUNTERS_PTX := build/counters/patterns.ptx
TEST_PTX := $(COUNTERS_PTX) $(patsubst tests/ptx/cuda/%.cu,build/ptx/%.ptx,$(wildcard tests/ptx/cuda/*.cu))
HAZARD_PTX := $(foreach f,$(wildcard tests/hazards/*.cu),$(patsubst tests/%.cu,build/%,$f).faulty.ptx \
  $(patsubst tests/%.cu,build/%,$f).repaired.ptx)
TRACED := $(notdir $(patsubst %/kernel.cu,%,$(shell grep -l trace_begin stages/*/kernel.cu)))
TRACE_PTX := $(foreach name,$(TRACED),build/trace/$(name).ptx build/unmarked/$(name).ptx)
GPU_KERNELS := $(patsubst tests/gpu/%.cu,build/gpu/%.cubin,$(wildcard tests/gpu/*.cu))
FAKE_DRIVER := $(BUILD)/driver/libcuda.so.1
FUZZERS := $(patsubst tests/fuzz/%.c,build/fuzz/%,$(wildcard tests/fuzz/*.c))
# Recorded times are in DEVICE.csv, those beside PyTorch's in DEVICE-peers.csv, on other inputs in DEVICE-inputs.csv,
# counts in counters.csv, time stamps in trace/.
RECORDINGS := $(patsubst plots/data/%.csv,plots/%,$(filter-out %-peers.csv %-inputs.csv %/counters.csv,$(wildcard plots/data/*.csv)))
# The stages whose timelines lesson 09 shows in one picture.
COMPARED := $(wildcard $(foreach n,06 07 08 09,plots/data/trace/stage-$n.csv))
PLOTS := $(foreach r,$(RECORDINGS),$r-ladder.svg $r-seqlen.svg $r-roofline.svg) \
  $(patsubst plots/data/%.csv,plots/%.svg,$(wildcard plots/data/*-peers.csv plots/data/*-inputs.csv)) \
  $(patsubst plots/data/trace/stage-%.csv,plots/trace-%.svg,$(wildcard plots/data/trace/stage-*.csv)) \
  $(if $(word 4,$(COMPARED)),plots/timelines.svg)

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1|\2/p' Makefile | awk -F'|' '{ printf "  %-20s %s\n", $$1, $$2 }'
	@echo '  make stage-NN        builds ./stage-NN, one of: $(STAGES:./%=%)'
	@echo '  make diff-NN         its kernel beside that of the stage below'
	@echo '  make ptx-NN          its PTX, and make sass-NN what the GPU runs, with the source lines between'
	@echo '  make sanitize-NN     on the GPU: compute-sanitizer'"'"'s four tools, in a table'
	@echo '  make profile-NN      on the GPU: what Nsight Compute counts, in a table and plots/data/ncu; NOTE says what you changed'
	@echo '  make trace-NN        on the GPU: who does what when inside the kernel, as a picture'
	@echo '  make baseline-NAME   builds ./baseline-NAME, one of: $(BASELINES:./%=%)'
	@echo 'Variables: CC, CFLAGS, ARCH (native), BUILD with SANITIZE (BUILD=build/asan SANITIZE=address,undefined),'
	@echo '  OPTIONS (of the stages, in ladder), TESTS (a pattern, "plots/*"), SEQLENS, REPEAT (of bench),'
	@echo '  RELEASES (of test-cuda), FUZZ_SECONDS (of test-deep), CUDA_HOME, V=1'

ladder: $(STAGES) ## builds every stage, runs each on the GPU or the emulator, and prints one table
	@sh common/build/ladder.sh "$(OPTIONS)" $(STAGES)

# $(call run_tests,PATTERN,ROOT): ROOT is the repository, or a folder that looks like it and has other programs.
run_tests = HL_ROOT="$(abspath $2)" PTX_DIR="$(CURDIR)/build/ptx" HAZARD_PTX_DIR="$(CURDIR)/build/hazards" \
  COUNTERS_PTX="$(CURDIR)/$(COUNTERS_PTX)" BUILT="$(CURDIR)/build" TRACE_PROGRAMS="$(abspath $(BUILD)/trace)" TRACED="$(TRACED)" FAKE_DRIVER="$(CURDIR)/$(FAKE_DRIVER)" \
  LSAN_OPTIONS=suppressions=$(CURDIR)/common/build/leaks.supp:print_suppressions=0 $(BUILD)/run-tests --filter='$1'
test: root $(BUILD)/run-tests $(FAKE_DRIVER) $(TEST_PTX) $(HAZARD_PTX) $(TRACE_PTX) | gnuplot ## every test that needs no GPU; TESTS=pattern for some of them
	@$(call run_tests,$(TESTS),$(BIN))
root: $(STAGES) $(LADDER) $(BASELINES)
	@$(if $(filter ./,$(BIN)),,ln -sfn $(addprefix $(CURDIR)/,Makefile README.md common notes plots stages tests) $(BIN))
test-gpu: root $(BUILD)/run-tests $(GPU_KERNELS) $(foreach n,$(TRACED),$(BUILD)/trace/trace-$(call number,$n)) ## on the GPU: the stages; GPU against emulator; compute-sanitizer
	@sh -c '. common/build/need.sh; need_gpu $(BIN)stage-00' test-gpu
	@HL_GPU=1 $(call run_tests,gpu_*/*,$(BIN))
	@sh common/build/sanitize.sh $(CUDA) $(STAGES) || [ $$? = 3 ] # without compute-sanitizer its checks are skipped
test-cuda: root $(BUILD)/nvrtc ## the kernels under every CUDA 12, from pip wheels (1 GB); RELEASES="12.0 12.9" for some
	@sh common/build/cuda12.sh $(BUILD)/nvrtc $(BIN) $(CUDA)/bin/ptxas "$(RELEASES)" \
	  $(foreach name,$(NAMES),"$(name) $(ALLOW_$(name))")
test-deep: $(FUZZERS) $(BUILD)/run-tests $(TEST_PTX) $(HAZARD_PTX) ## fuzzes for FUZZ_SECONDS each; tests under ASan, UBSan, TSan
	@for f in $(FUZZERS); do sh common/build/fuzz.sh $$f $(FUZZ_SECONDS) || exit 1; done
	@$(MAKE) --no-print-directory BUILD=build/asan SANITIZE=address,undefined test
	@$(MAKE) --no-print-directory test-threads
test-threads: $(BUILD)/run-tests ## the stages' programs under TSan
	@# Criterion itself does not run under TSan: its threads are those of the programs.
	@$(MAKE) --no-print-directory BUILD=build/tsan SANITIZE=thread root
	@$(call run_tests,stages/*,build/tsan/root)

record-golden: nvcc ## on the GPU: records tests/golden again; what differs from the model is printed
	@mkdir -p build/golden
	$(CC) -O2 -ffp-contract=off -c common/emulator/tensor/tensor_core.c -o build/golden/tensor_core.o
	$(NVCC) -O2 -std=c++17 -gencode arch=compute_90a,code=sm_90a -Icommon/emulator/tensor tests/golden/*.cu \
	  build/golden/tensor_core.o -o build/golden/record
	build/golden/record tests/golden build/golden

bench: $(STAGES) $(BASELINES) ## on the GPU: records every stage's times in plots/data; goes on after an interruption
	@sh common/build/bench.sh $(STAGES) $(BASELINES)
	@if command -v gnuplot >/dev/null; then $(MAKE) --no-print-directory plot; else echo 'make plot draws them'; fi
library: $(LADDER) ## builds libhopper_ladder.so, the stages for other programs: common/library/hopper_ladder.h
peers: $(LADDER) $(BASELINES) ## on the GPU: records the stages in turn with PyTorch's attention; OPTIONS of plots/peers.py
	@python3 plots/peers.py --record $(OPTIONS)
bench-emulator: $(BUILD)/bench-emulator build/ptx/bench_fma.ptx ## how fast the emulator is, and the memory of its checks
	@$^

# Ways to look at one stage. A number that no stage has is told, and not taken for a file that make cannot make.
VIEWS := trace profile sanitize ptx sass diff
$(NUMBERS:%=trace-%): trace-%: $(BUILD)/trace/trace-% $(BIN)stage-%
	@sh common/build/trace.sh $(BIN)stage-$* $< "$(OPTIONS)"
	@if command -v gnuplot >/dev/null; then $(MAKE) --no-print-directory plots/trace-$*.svg; \
	else echo 'no gnuplot here: make plot draws it where there is one'; fi
$(NUMBERS:%=profile-%): profile-%: $(BIN)stage-%
	@sh common/build/profile.sh $(CUDA) $(BIN)stage-$* "$(NOTE)" "$(OPTIONS)"
$(NUMBERS:%=sanitize-%): sanitize-%: $(BIN)stage-%
	@sh common/build/sanitize.sh $(CUDA) $(BIN)stage-$*
$(NUMBERS:%=ptx-%): ptx-%: $(BIN)stage-%
	@sh common/build/listing.sh ptx $(filter $*-%,$(NAMES))
$(NUMBERS:%=sass-%): sass-%: $(BIN)stage-% | nvdisasm
	@sh common/build/listing.sh sass $(filter $*-%,$(NAMES)) $(NVDISASM)
$(NUMBERS:%=diff-%): diff-%:
	@sh common/build/diff.sh $*
UNKNOWN := $(filter-out $(foreach view,stage $(VIEWS),$(NUMBERS:%=$(view)-%)), \
  $(filter stage-% $(VIEWS:%=%-%),$(MAKECMDGOALS)))
$(UNKNOWN):
	@echo 'make $@: there is no such stage; there are $(NUMBERS)' >&2; exit 2

counters: $(STAGES) ## on the emulator: records what every stage does in plots/data/counters.csv
	@sh common/build/counters.sh $(STAGES)

plot: $(PLOTS) ## draws plots/data/*.csv, as SVG and PNG
	@[ "$(PLOTS)" ] || echo 'plot: no recorded data in plots/data; on a Hopper GPU, make bench records it'
define DRAW
$(call say,PLOT $@)
$Qgnuplot -c $(filter %.gp,$<) $(filter %.csv,$^) $(@:.svg=) $(WINDOW)
endef
LOOK := plots/style.gp plots/recording.gp
plots/%-ladder.svg: plots/ladder.gp plots/data/%.csv $(LOOK) | gnuplot
	$(DRAW)
plots/%-seqlen.svg: plots/seqlen.gp plots/data/%.csv $(LOOK) | gnuplot
	$(DRAW)
plots/%-peers.svg: plots/seqlen.gp plots/data/%-peers.csv $(LOOK) | gnuplot
	$(DRAW)
plots/%-inputs.svg: plots/inputs.gp plots/data/%-inputs.csv $(LOOK) | gnuplot
	$(DRAW)
plots/%-roofline.svg: plots/roofline.gp plots/data/%.csv plots/data/counters.csv $(LOOK) | gnuplot
	$(DRAW)
plots/timelines.svg: plots/timeline.gp $(COMPARED) $(LOOK) | gnuplot
	$(call say,PLOT $@)
	$Qgnuplot -c $< $(firstword $(COMPARED)) $(@:.svg=) 15000 23000 $(wordlist 2,4,$(COMPARED))
plots/trace-%.svg: WINDOW = $(WINDOW_$*)
plots/trace-%.svg: plots/timeline.gp plots/data/trace/stage-%.csv $(LOOK) | gnuplot
	$(DRAW)

format: ## formats all C and CUDA
	git ls-files '*.c' '*.h' '*.cu' ':!tests/golden' ':!tests/hazards' | xargs clang-format -i
clean: ## removes what was built; the CUDA compilers in build/cuda* stay
	rm -rf $(filter-out build/cuda build/cuda-%,$(wildcard build/*)) stage-[0-9][0-9]* libhopper_ladder.so baseline-*
deps: nvcc criterion gnuplot ## installs what is missing: the CUDA compiler, Criterion, gnuplot
nvcc criterion gnuplot:
	@CC="$(CC)" sh common/build/deps.sh $@ $(if $(filter $(WHEEL),$(NVCC)),build/cuda)
nvdisasm:
	@$(if $(filter build/%,$(NVDISASM)),sh common/build/deps.sh nvdisasm build/cuda-nvdisasm)

# ---- stages ----

# stages/NN-name/stage.mk, where there is one, lists what ptxas may do there: ALLOW_NN-name := stack spills serialised;
# serialised-12.5 is for that release only, in test-cuda. And it says which part of the stage's timeline is worth a
# picture, in ns: WINDOW_NN := 16000 24000
-include $(wildcard stages/*/stage.mk)

# A program with a stage: $(call PROGRAM,PROGRAM,FOLDER,KERNELS). FOLDER has its C files; KERNELS its kernels, as an object.
define PROGRAM
$1: $(call objects,$2/*.c) $(BUILD)/$3/embed.o $(MAIN) $(LIBRARY)
	$$(call say,LD $$@)
	@mkdir -p $$(@D)
	$$Q$$(CC) $$(ALL_CFLAGS) $$^ $$(LIBS) -o $$@
endef
$(foreach name,$(NAMES),$(eval $(call PROGRAM,$(BIN:./%=%)stage-$(call number,$(name)),stages/$(name),stages/$(name))))
$(foreach name,$(NAMES),$(eval $(call PROGRAM,$(BUILD)/trace/trace-$(call number,$(name)),stages/$(name),trace/$(name))))
$(foreach name,$(BASELINE_NAMES),$(eval $(call PROGRAM,$(BIN:./%=%)baseline-$(name),common/baselines/$(name),common/baselines/$(name))))
define EMBED
@mkdir -p $(@D)
$Q$(CC) -c $(RENAMED) -DSTAGE_PTX='"$(filter %.ptx,$^)"' -DSTAGE_CUBIN='"$(filter %.cubin,$^)"' $< -o $@
endef
$(BUILD)/stages/%/embed.o: common/harness/embed.S build/kernels/%.ptx build/kernels/%.cubin
	$(EMBED)
$(BUILD)/common/baselines/%/embed.o: common/harness/embed.S build/kernels/baseline-%.ptx build/kernels/baseline-%.cubin
	$(EMBED)
$(BUILD)/trace/%/embed.o: common/harness/embed.S build/trace/%.ptx build/trace/%.cubin
	$(EMBED)

# ---- the library: the stages that are attention kernels, which their stage.c tells by having a launch ----

IN_LIBRARY := $(foreach name,$(NAMES),$(if $(shell grep -s '[.]launch =' stages/$(name)/stage.c),$(name)))
PIC := $(BUILD)/library
LADDER_OBJECTS := $(PIC)/common/library/library.o \
  $(foreach name,$(IN_LIBRARY),$(patsubst %.c,$(PIC)/%.o,$(wildcard stages/$(name)/*.c)) $(PIC)/stages/$(name)/embed.o)
LADDER_PARTS := $(patsubst $(BUILD)/%,$(PIC)/%,$(filter $(call objects,common/device/*.c common/harness/*.c),$(MEMBERS)))
$(LADDER): $(LADDER_OBJECTS) $(PIC)/parts.a
	$(call say,LD $@)
	@mkdir -p $(@D)
	$Q$(CC) $(ALL_CFLAGS) -shared $(if $(SANITIZE),,-Wl,-z,defs) $^ $(LIBS) -o $@
# What the stages' launches may use. The linker takes what they do use, which is no emulator.
$(PIC)/parts.a: $(LADDER_PARTS) $(PIC)/members
	@rm -f $@
	$Qar rcs $@ $(LADDER_PARTS)
# In the library each stage's symbols have its number: stage_03, stage_03_cubin.
SYMBOL = stage_$(call number,$*)
$(PIC)/%: RENAMED = -Dstage=$(SYMBOL) $(foreach end,ptx ptx_end cubin cubin_end,-Dstage_$(end)=$(SYMBOL)_$(end))
$(PIC)/stages/%.o: stages/%.c $(BUILD)/flags | nvcc
	$(call say,CC $< for the library)
	@mkdir -p $(@D)
	$Q$(CC) $(ALL_CFLAGS) -fPIC $(RENAMED) $(INCLUDE) -MMD -MP -c $< -o $@
$(PIC)/stages/%/embed.o: common/harness/embed.S build/kernels/%.ptx build/kernels/%.cubin
	$(EMBED)
$(PIC)/common/%.o: common/%.c $(BUILD)/flags $(PIC)/members | nvcc
	$(call say,CC $< for the library)
	@mkdir -p $(@D)
	$Q$(CC) $(ALL_CFLAGS) -fPIC -D'STAGES(X)=$(foreach name,$(IN_LIBRARY),X($(call number,$(name))))' $(INCLUDE) \
	  -MMD -MP -c $< -o $@

# Source paths inside the PTX become relative to the repository: reports stay short, and builds the same anywhere.
define PTX
$(call say,PTX $<)
@mkdir -p $(@D)
$Q$(NVCC) $(NVCC_FLAGS) $(NVCC_DEFINES) -MMD -MP -MF $@.d -MT $@ -ptx $< -o $@
@sed -i 's|^\(\t\.file\t[0-9]* "\)$(CURDIR)/|\1|' $@
endef
build/kernels/%.ptx: stages/%/kernel.cu build/nvcc-flags | nvcc
	$(PTX)
build/kernels/baseline-%.ptx: common/baselines/%/kernel.cu build/nvcc-flags | nvcc
	$(PTX)
build/trace/%.ptx: NVCC_DEFINES := -DTRACE
build/trace/%.ptx: stages/%/kernel.cu build/nvcc-flags | nvcc
	$(PTX)
# What the kernel would be had it never had a time stamp.
build/unmarked/%.ptx: NVCC_DEFINES = -Istages/$*
build/unmarked/%.ptx: build/unmarked/%.cu build/nvcc-flags | nvcc
	$(PTX)
build/unmarked/%.cu: stages/%/kernel.cu
	@mkdir -p $(@D)
	@sed '/^ *trace[a-z_]*(.*);$$/d; /ptx\/trace\.h/d' $< >$@
build/ptx/%.ptx: tests/ptx/cuda/%.cu build/nvcc-flags | nvcc
	$(PTX)
build/hazards/%.faulty.ptx: tests/hazards/%.cu build/nvcc-flags | nvcc
	$(PTX)
build/hazards/%.repaired.ptx: NVCC_DEFINES := -DREPAIRED
build/hazards/%.repaired.ptx: tests/hazards/%.cu build/nvcc-flags | nvcc
	$(PTX)
build/counters/%.ptx: tests/counters/%.cu build/nvcc-flags | nvcc
	$(PTX)
build/gpu/%.ptx: tests/gpu/%.cu build/nvcc-flags | nvcc
	$(PTX)
build/gpu/%.cubin: build/gpu/%.ptx
	$(call say,PTXAS $<)
	$Qsh common/build/ptxas.sh $(NVCC) $< $@ stack serialised
# ptxas mentions a spill, a stack frame or a serialised wgmma and goes on; here they fail the build.
build/kernels/%.cubin: build/kernels/%.ptx common/build/ptxas.sh
	$(call say,PTXAS $<)
	$Qsh common/build/ptxas.sh $(NVCC) $< $@ $(ALLOW_$*)
# Where the registers are full, a time stamp spills a few.
build/trace/%.cubin: build/trace/%.ptx common/build/ptxas.sh
	$(call say,PTXAS $<)
	$Qsh common/build/ptxas.sh $(NVCC) $< $@ $(ALLOW_$*) stack spills

# ---- C ----

$(BUILD)/%.o: %.c $(BUILD)/flags | nvcc
	$(call say,CC $<)
	@mkdir -p $(@D)
	$Q$(CC) $(ALL_CFLAGS) $(INCLUDE) -MMD -MP -c $< -o $@
$(BUILD)/common/harness/recorded.o: plots/data/nvidia-h200.csv
$(LIBRARY): $(MEMBERS) $(BUILD)/members
	@rm -f $@
	$Qar rcs $@ $(MEMBERS)
$(BUILD)/run-tests: $(TEST_OBJECTS) $(LIBRARY) $(BUILD)/members
	$(call say,LD $@)
	$Q$(CC) $(ALL_CFLAGS) $(TEST_OBJECTS) $(LIBRARY) -lcriterion $(LIBS) -o $@
$(TEST_OBJECTS): | criterion
$(FAKE_DRIVER): tests/driver/fake_driver.c tests/driver/fake_driver.h $(BUILD)/flags
	$(call say,LD $@)
	@mkdir -p $(@D)
	$Q$(CC) $(ALL_CFLAGS) $(INCLUDE) -fPIC -shared -Wl,-soname,libcuda.so.1 $< -o $@
$(BUILD)/nvrtc: $(BUILD)/tests/cuda/nvrtc.o
$(BUILD)/bench-emulator: $(BUILD)/tests/bench_emulator.o $(BUILD)/tests/support/workloads.o $(LIBRARY)
$(BUILD)/nvrtc $(BUILD)/bench-emulator:
	$(call say,LD $@)
	$Q$(CC) $(ALL_CFLAGS) $^ $(LIBS) -o $@
# libFuzzer comes with clang; the whole emulator is compiled for it at once.
build/fuzz/%: tests/fuzz/%.c $(wildcard common/emulator/*.h common/emulator/*/*) $(wildcard common/harness/*) $(wildcard common/device/*)
	$(call say,FUZZ $<)
	@mkdir -p $(@D)
	$Qclang -std=c11 -D_DEFAULT_SOURCE -g -O1 -fno-strict-aliasing -ffp-contract=off $(INCLUDE) \
	  -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all $< $(MEMBERS:$(BUILD)/%.o=%.c) $(LIBS) -o $@

# A disk that is full or a tree that is read-only would fail in every line below.
ifneq ($(or $(MAKECMDGOALS),help),help)
ifneq ($(shell { mkdir -p $(BUILD) && echo yes >$(BUILD)/writable && cat $(BUILD)/writable; } 2>&-),yes)
$(error $(BUILD) cannot be written: the disk is full, the tree is read-only, or something else has that name)
endif
endif

# Files that hold a setting and are rewritten when it changed: what depends on the setting depends on the file.
remember = $(shell { mkdir -p $(dir $1); echo '$2' | cmp -s - $1 || echo '$2' >$1; } 2>&-)
$(call remember,$(BUILD)/flags,$(CC) $(ALL_CFLAGS) $(INCLUDE))
$(call remember,$(BUILD)/members,$(MEMBERS) $(TEST_OBJECTS))
$(call remember,$(PIC)/members,$(IN_LIBRARY) $(LADDER_PARTS))
$(call remember,build/nvcc-flags,$(NVCC) $(NVCC_FLAGS) $(foreach name,$(NAMES),$(ALLOW_$(name))))

Q := $(if $(V),,@)
say = $(if $(V),,@echo '  $1')
-include $(shell find build $(BUILD) -name '*.d' 2>/dev/null)
.PHONY: help ladder test root test-gpu test-cuda test-deep test-threads record-golden bench library peers bench-emulator counters plot format clean deps nvcc criterion gnuplot nvdisasm \
  $(foreach view,$(VIEWS),$(NUMBERS:%=$(view)-%)) $(UNKNOWN)
.SECONDARY:
.DELETE_ON_ERROR:
