# The emulator, the harness and all stages as one WebAssembly module, for the book: notes/web.md.

WEB := build/web
EMCC ?= emcc
# What is as the native build's but for the machine: see toolchain.mk.
WEB_CFLAGS := -std=c11 -D_DEFAULT_SOURCE -fvisibility=hidden $(WARNINGS) -fno-strict-aliasing -ffp-contract=off -O3 -msimd128
# Debian's Emscripten finds its JavaScript packages there.
EMSCRIPTEN := NODE_PATH=/usr/share/nodejs $(EMCC)
WEB_PARTS := $(patsubst %.c,$(WEB)/objects/%.o,$(filter-out common/harness/main.c common/harness/recorded.c common/device/gpu.c \
  common/device/attach.c,$(wildcard common/emulator/*/*.c common/device/*.c common/harness/*.c)))
WEB_STAGES := $(foreach name,$(NAMES),$(patsubst %.c,$(WEB)/objects/%.o,$(wildcard stages/$(name)/*.c)))
WEB_MAIN := $(patsubst %.c,$(WEB)/objects/%.o,$(wildcard common/web/*.c))
# node's handlers of errors stay node's.
WEB_NODE := -sNODEJS_CATCH_EXIT=0 -sNODEJS_CATCH_REJECTION=0
WEB_LINK := -sALLOW_MEMORY_GROWTH=1 -sMAXIMUM_MEMORY=2147483648 -sINITIAL_MEMORY=33554432 -sMODULARIZE=1 \
  -sEXPORT_NAME=createStages -sINVOKE_RUN=0 -sEXIT_RUNTIME=1 -sEXPORTED_RUNTIME_METHODS=callMain,FS -sENVIRONMENT=worker,node \
  $(WEB_NODE)
$(eval $(call remember,$(WEB)/flags,$(EMCC) $(filter-out -Werror,$(WEB_CFLAGS)) $(WEB_LINK)))
$(eval $(call remember,$(WEB)/members,$(WEB_PARTS) $(WEB_STAGES)))
# Emscripten links in steps, each of which reads the file of the one before. Two makes at once have a folder each for that.
WEB_APART = $@.$$$$
WEB_PLACE = && mv $(WEB_APART)/* $(@D) && rmdir $(WEB_APART)

$(WEB)/stages.js: $(WEB_MAIN) $(WEB_STAGES) $(WEB)/parts.a $(WEB)/flags $(WEB)/variants/variants.h
	$(call say,EMLD $@)
	$Qmkdir -p $(WEB_APART) && $(EMSCRIPTEN) -O3 -msimd128 $(WEB_LINK) $(filter %.o %.a,$^) \
	  $$(find $(WEB)/variants -name '*.o') -Wl,--fatal-warnings -o $(WEB_APART)/$(@F) $(WEB_PLACE)
# The host code of the mistakes that change it. A change of a header of the harness makes them new, too.
$(WEB)/variants/variants.h: common/web/variants.py common/book/break_ptx.py $(WEB_STAGES) \
    $(wildcard stages/*/breaks/*.patch) $(wildcard common/harness/*.h) $(WEB)/flags
	$Qpython3 common/web/variants.py $(@D) $(WEB)/objects/stages env $(EMSCRIPTEN) $(WEB_CFLAGS) -w $(INCLUDE)
	@touch $@
$(WEB)/stages.wasm: $(WEB)/stages.js
$(WEB)/parts.a: $(WEB_PARTS) $(WEB)/members
	@rm -f $@.$$$$ && emar rcs $@.$$$$ $(WEB_PARTS) && mv $@.$$$$ $@
$(WEB)/objects/common/web/main.o: private WEB_CFLAGS += -D'STAGES(X)=$(foreach number,$(NUMBERS),X($(number)))' -I$(WEB)/variants
$(WEB)/objects/common/web/main.o: $(WEB)/variants/variants.h
$(WEB)/objects/%.o: %.c $(WEB)/flags $(WEB)/members | build/have/emscripten
	$(call say,EMCC $<)
	@mkdir -p $(@D)
	$Q$(EMSCRIPTEN) $(WEB_CFLAGS) $(if $(filter stages/%,$<),-Dstage=stage_$(call number,$(notdir $(patsubst %/,%,$(dir $<))))) $(INCLUDE) -MMD -MP -c $< -o $@

$(WEB)/run.js $(WEB)/worker.js: $(WEB)/%: common/web/%
	@cp $< $@

# ---- make test-web ----

# The C suites that need no other program: they are about the emulator, and about what the harness computes. Not `advice`:
# it has allocations of more than 4 GB, and pointers of a host with 64 bits.
WEB_SUITES := backward barriers bits carry_golden cluster contraction convert cooperative counters deadlock e4m3 float golden \
  half hazards im2col instructions integer matrix matrix_golden matrix_sparse mbarrier meeting postponed reference reports rounded \
  rows rules scheduling setmaxnreg shadow splits target tensor_copy tensor_golden tensor_map undefined video video_golden wgmma wmma
WEB_SUITE_OBJECTS := $(patsubst %.c,$(WEB)/objects/%.o,$(WEB_SUITES:%=tests/test_%.c) $(filter-out tests/support/matched.c,$(wildcard tests/support/*.c)) tests/web/suites.c \
  common/web/absent.c)
$(WEB)/objects/tests/%.o: WEB_CFLAGS += -O1 -Itests/web -w
$(WEB)/suites.js: $(WEB_SUITE_OBJECTS) $(WEB)/parts.a
	$(call say,EMLD $@)
	$Qmkdir -p $(WEB_APART) && \
	  $(EMSCRIPTEN) -O2 -msimd128 -sALLOW_MEMORY_GROWTH=1 -sMAXIMUM_MEMORY=4294967296 -sMODULARIZE=1 -sEXPORT_NAME=createSuites \
	  -sINVOKE_RUN=0 -sEXIT_RUNTIME=1 -sEXPORTED_RUNTIME_METHODS=callMain,ENV,FS -sENVIRONMENT=node -lnodefs.js $(WEB_NODE) $^ \
	  -o $(WEB_APART)/$(@F) $(WEB_PLACE)
# As for the native suites: run_tests in tests.mk. Where arithmetic is the matter, QUICK=1 runs all.
WEB_ENVIRONMENT := HL_ROOT=./ PTX_DIR=build/ptx HAZARD_PTX_DIR=build/hazards COUNTERS_PTX=$(COUNTERS_PTX) BUILT=build
WEB_PATTERNS := $(if $(QUICK),floats/ rounded/ convert/ half/ integer/ golden wgmma/)
