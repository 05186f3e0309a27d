# Hopper Ladder. `make help` lists what there is to type. Stages are found from the folders: adding stages/NN-name adds
# the target stage-NN, and common/baselines/NAME baseline-NAME. What is made goes to build/, except these programs and
# the library, which stand in the root. V=1 shows the commands.
#
#   kernel.cu --nvcc--> PTX --ptxas--> cubin     both embedded in ./stage-NN by embed.S
#   stage.c + libhopper.a (harness, device, emulator) --cc--> ./stage-NN
#
# How things are made is in common/build/*.mk; what is done with them is here.

ARCH ?= native
BUILD ?= build
CFLAGS ?= -O2 $(if $(SANITIZE),-g1,-g)# -g1: lines alone, of which ASan and UBSan speak; tensor_core.c compiles in a third of the time
OPTIONS ?=
TESTS ?= *
FUZZ_SECONDS ?= 60
MINE ?= mine
INPUTS ?= 1048576
RELEASES ?= 11.8 12.0 12.1 12.2 12.3 12.4 12.5 12.6 12.8 12.9

ifeq ($(MAKELEVEL)$(filter -j%,$(MAKEFLAGS)),0)
MAKEFLAGS += -j$(shell nproc)# on all cores, unless told otherwise
endif

.DEFAULT_GOAL := help
include $(addprefix common/build/,toolchain.mk stages.mk library.mk runner.mk install.mk tests.mk plots.mk views.mk course.mk book.mk web.mk)
include $(wildcard common/baselines/*/build.mk)

##@ The whole ladder
help: ## prints this list
	@echo 'Learn, with NN for the number of a stage:'
	@echo '  make stage-NN          builds ./stage-NN, one of: $(STAGES:./%=%)'
	@echo '  make read-NN           shows lesson NN in the terminal, and make answers-NN the answers to its questions'
	@echo '  make try-NN            begins a task of stage NN in mine/NN; the next time, builds and judges what you wrote there'
	@echo '  make hint-NN           shows the next hint for the task; make solution-NN shows the lines of the stage'
	@echo '  make break-NN-K        shows mistake K of lesson NN: what it changes, and what happens'
	@echo '  make grade-NN          judges all tasks of stage NN as they are; exit code 0 if they pass'
	@echo '  make quiz-NN           asks the questions of quiz NN; make quiz lists them; ANSWERS="48 96 b" answers at once'
	@echo '  make case-NN           a program that a user reports to be wrong: mend it; make case lists them; SOLUTION=1 shows our repair'
	@echo '  make capstone-NAME     begins a kernel from an empty file: gemm, multicast, window, decode; then builds and judges it'
	@echo '  make diff-NN           shows what is new in its kernel compared with the stage below'
	@echo '  make ptx-NN            shows its PTX, and make sass-NN its machine code, each with the source lines between'
	@echo '  make sanitize-NN       on the GPU: runs compute-sanitizer'"'"'s four tools, and prints a table'
	@echo '  make profile-NN        on the GPU: prints and records what Nsight Compute counts (plots/data/ncu); NOTE'
	@echo '  make trace-NN          on the GPU: draws a timeline of the kernel'
	@echo '  make baseline-NAME     builds ./baseline-NAME, one of: $(BASELINES:./%=%)'
	@sed -n 's/^##@ \(.*\)/\1:/p; s/^\([a-z0-9-]*\):.*## \(.*\)/make \1|\2/p' Makefile | awk -F'|' 'NF < 2; NF > 1 { printf "  %-22s %s\n", $$1, $$2 }'
	@echo 'Variables: CC, CFLAGS, ARCH (native), BUILD with SANITIZE (BUILD=build/asan SANITIZE=address,undefined),'
	@echo '  OPTIONS (of the stages, in ladder; of explain), TESTS (a pattern, "plots/*"), SEQLENS, REPEAT (of bench),'
	@echo '  RELEASES (of test-cuda), FUZZ_SECONDS (of test-deep), MINE (of try, where your files are), CUDA_HOME,'
	@echo '  WERROR=1 (a warning is an error), V=1'

ladder: $(STAGES) ## builds and runs every stage, on the GPU or the emulator, and prints one table
	@sh common/build/ladder.sh "$(OPTIONS)" $(STAGES)

explain: ## shows where a tile lies for TMA and wgmma; OPTIONS="--rows=128 --major=mn", or OPTIONS=0x... for a descriptor
	@python3 common/course/explain.py $(OPTIONS)

progress: ## shows which tasks are done, and which one is next
	@python3 common/course/course.py progress

book: ## makes build/book: all lessons and notes as static pages, with search; any host can serve them
book-runs: ## the same, with kernels and mistakes that run in the browser: compiles 250 kernels, half an hour

##@ Run kernels of your own, and these from other programs
hopper-run: $(filter-out ./%,$(HOPPER_RUN)) ## builds ./hopper-run, which runs other CUDA programs on the emulator: notes/hopper-run.md
run: run_file ## compiles FILE=my.cu and runs it on the emulator; OPTIONS (of hopper-run), ARGS, NVCC_FLAGS
install: $(if $(filter file,$(origin ARCH)),install_portable,install_files) ## installs hopper-run, the emulator and the stages as libraries; PREFIX (/usr/local), DESTDIR
library: $(LADDER) $(LADDER_PTX) ## builds libhopper_ladder.so, the stages for other programs: common/library/hopper_ladder.h
web: $(WEB)/stages.js $(WEB)/stages.wasm $(WEB)/run.js $(WEB)/worker.js ## builds emulator and stages in WebAssembly, for pages: notes/web.md

##@ Test
test: test-programs ## runs every test that needs no GPU; TESTS=pattern selects some of them
	@sh common/build/rooms.sh $(MEMBERS)
	@$(call run_tests,$(TESTS),$(BIN))
test-programs: root $(TEST_NEEDS) | build/have/gnuplot
root: $(STAGES) $(LADDER) $(LADDER_PTX) $(BASELINES)
	@$(if $(filter ./,$(BIN)),,ln -sfnr Makefile README.md common examples notes plots stages tests $(BIN))
test-gpu: root $(GPU_NEEDS) ## on the GPU: tests the stages, compares GPU and emulator, runs compute-sanitizer
	@sh -c '. common/build/need.sh; need_gpu $(BIN)stage-00' test-gpu
	@HL_GPU=1 $(call run_tests,gpu_*/*,$(BIN))
	@sh common/build/sanitize.sh $(CUDA) $(STAGES) || [ $$? = 3 ] # without compute-sanitizer its checks are skipped
test-cuda: root $(BUILD)/nvrtc ## builds the kernels with each CUDA 12, from pip wheels (1 GB); RELEASES selects some
	@sh common/build/cuda12.sh $(BUILD)/nvrtc $(BIN) $(CUDA)/bin/ptxas "$(RELEASES)" \
	  $(foreach name,$(NAMES),"$(name) $(ALLOW_$(name))")
test-course: root ## tests the course: each mistake shows what its lesson says; each task can be solved
	@python3 tests/test_course.py && python3 tests/test_capstone.py
test-book: ## tests the book: links, listings, HTML, contrast; and each lesson in Chromium, where there is one
test-deep: $(FUZZERS) $(TEST_NEEDS) ## runs the fuzzers for FUZZ_SECONDS each, and the tests under ASan, UBSan and TSan
	@for f in $(FUZZERS); do sh common/build/fuzz.sh $$f $(FUZZ_SECONDS) || exit 1; done
	@$(MAKE) --no-print-directory BUILD=build/asan SANITIZE=address,undefined test
	@$(MAKE) --no-print-directory test-threads
test-mutants: root $(TEST_NEEDS) ## makes mistakes in a copy and sees whether a test fails; ONLY=race.c selects some
	@python3 tests/mutants/run.py $(ONLY)
test-order: $(CHECK_TEST) ## holds the race check to happens-before by brute force: ORDER_SCRIPTS random scripts, from number ORDER_FIRST on
	@$<
test-mathematics: $(HOPPER_RUN) $(MATHEMATICS_PROGRAMS) ## holds all of CUDA's functions to an H100's results; INPUTS=4096, 65536 or 1048576
	@for p in $(MATHEMATICS_PROGRAMS); do echo "$$p" && $(HOPPER_RUN) --hazards=off $$p check tests/mathematics $(INPUTS) || exit 1; done
test-others: $(HOPPER_RUN) ## fetches five public repositories and runs their kernels on the emulator: half an hour
	@python3 tests/others/run.py
test-python: $(HOPPER_RUN) build/python/packages ## runs kernels in seven of Python's languages; gets their packages, 6 GB; TORCH=no: without PyTorch, 0.7 GB; PYCUDA=yes: compiles PyCUDA
	@python3 tests/python/run.py build/python/bin/python
test-tutorials: $(HOPPER_RUN) build/python/packages ## fetches Triton's and Gluon's tutorials, and runs them on the emulator; TUTORIALS=folder: takes these
	@python3 tests/python/tutorials.py build/python/bin/python
test-tinygrad: $(HOPPER_RUN) build/python/packages ## fetches tinygrad's tests of its operations, and runs them on the emulator: an hour; BACKEND=CUDA: by CUDA C
	@python3 tests/python/operations.py build/python/bin/python $(or $(BACKEND),CUDA:PTX)
test-numba: $(HOPPER_RUN) build/python/packages ## runs numba-cuda's own tests on the emulator, those that pass
	@python3 tests/python/numba_tests.py build/python/bin/python $(FILES)
test-suites: $(HOPPER_RUN) ## fetches three suites of races by others, and runs their programs on the emulator: minutes
	@python3 tests/suites/run.py
test-web: web $(WEB)/suites.js root $(BUILD)/run-tests $(TEST_PTX) $(HAZARD_PTX) ## holds the stages in WebAssembly to their programs, bit for bit, and runs the C suites there; QUICK=1: a part
	@$(WEB_ENVIRONMENT) node tests/web/suites.js $(WEB)/suites.js $(WEB_PATTERNS)
	@python3 tests/test_web.py
test-threads: $(BUILD)/run-tests ## runs the stages' programs under TSan
	@# Criterion itself does not run under TSan: its threads are those of the programs.
	@$(MAKE) --no-print-directory BUILD=build/tsan SANITIZE=thread root
	@$(call run_tests,stages/*,build/tsan/root)

##@ Record and draw
record-golden: build/golden/record ## on the GPU: records tests/golden again, and prints where the GPU differs from the model
	@$< tests/golden build/golden
record-rules: build/rules/record ## on the GPU: records tests/rules again: what it does where PTX leaves a rule open
	@$< >build/rules/h200.txt && mv build/rules/h200.txt tests/rules/h200.txt
record-mathematics: $(HOPPER_RUN) ## on the GPU: records tests/mathematics again: all of CUDA's functions, a million inputs each
	@$(MAKE) --no-print-directory mathematics MATHEMATICS_FLAGS='-gencode arch=compute_90a,code=sm_90a'
	@mkdir -p build/mathematics/recorded && sh tests/mathematics/on-gpu.sh build/mathematics/recorded
	@cd build/mathematics/recorded && cp h100.txt approximate.txt samples.bin ../../../tests/mathematics

bench: $(STAGES) $(BASELINES) ## on the GPU: records every stage's times in plots/data; continues after an interruption
	@sh common/build/bench.sh $(STAGES) $(BASELINES)
	@if command -v gnuplot >/dev/null; then $(MAKE) --no-print-directory plot; else echo 'make plot draws them'; fi
peers: $(LADDER) $(BUILD)/libread.so $(BASELINES) ## on the GPU: times the stages interleaved with PyTorch's attention; OPTIONS go to plots/peers.py
	@python3 plots/peers.py --record $(OPTIONS)
windows: $(BUILD)/libwindow.so ## on the GPU: times stage 21 interleaved with other attention with windows; OPTIONS go to plots/windows.py
	@python3 plots/windows.py --record $(OPTIONS)
flash-attention-3: build/libflash_attention_3.so build/libflash_attention_3_decode.so ## builds FlashAttention-3 for peers; FLASH_ATTENTION and CUTLASS name checkouts
cutlass-fmha: build/libcutlass_fmha.so ## builds CUTLASS's example 88 for peers; CUTLASS names a checkout
counters: $(STAGES) ## on the emulator: records the counters of every stage in plots/data/counters.csv
	@sh common/build/counters.sh $(STAGES)
bench-emulator: $(BENCH_NEEDS) ## measures the emulator's speed, and the memory that its checks need
	@$^
plot: $(PLOTS) ## draws plots/data/*.csv as SVG
	@[ "$(PLOTS)" ] || echo 'plot: no recorded data in plots/data; on a Hopper GPU, make bench records it'

##@ Keep house
format: ## formats all C and CUDA
	git ls-files '*.c' '*.h' '*.cu' ':!tests/golden' ':!tests/hazards' | xargs clang-format -i
clean: ## removes what was built; the CUDA compilers in build/cuda* stay
	rm -rf $(filter-out build/cuda build/cuda-%,$(wildcard build/*)) hopper-run stage-[0-9][0-9]* libhopper_ladder*.so baseline-* common/emulator/build
deps: nvcc criterion gnuplot ## installs what is missing: the CUDA compiler, Criterion, gnuplot

-include $(shell find build $(BUILD) \( -path build/mutants -o -path build/course \) -prune -o -name '*.d' -print 2>/dev/null)
.PHONY: help ladder explain progress test test-programs test-course root test-gpu test-cuda test-deep test-mutants test-others test-suites test-threads test-python test-tutorials test-tinygrad test-numba test-web test-order \
  test-mathematics mathematics record-golden record-rules record-mathematics bench library install run web \
  peers windows flash-attention-3 cutlass-fmha bench-emulator counters plot format clean deps
.SECONDARY:
.DELETE_ON_ERROR:
