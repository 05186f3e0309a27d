# libhopper_ladder.so: the kernels of attention and decode, which are the stages whose stage.c has a launch or a decode. It
# has their cubins, without line tables: all that a GPU needs. libhopper_ladder_ptx.so beside it has their PTX, which hopper-run's driver takes.

KERNELS ?= build/kernels# another release's: make test-cuda leaves them in build/cuda12/RELEASE
LADDER := $(BIN)libhopper_ladder.so
LADDER_PTX := $(BIN)libhopper_ladder_ptx.so
IN_LIBRARY := $(patsubst stages/%/stage.c,%,$(shell grep -Els '[.](launch|decode) =' $(NAMES:%=stages/%/stage.c) /dev/null))
PIC := $(BUILD)/library
LADDER_OBJECTS := $(patsubst %.c,$(PIC)/%.o,$(wildcard common/library/*.c)) \
  $(foreach name,$(IN_LIBRARY),$(patsubst %.c,$(PIC)/%.o,$(wildcard stages/$(name)/*.c)) $(PIC)/stages/$(name)/embed.o)
LADDER_PARTS := $(filter $(call objects,common/device/*.c common/harness/*.c),$(MEMBERS))
$(eval $(call remember,$(PIC)/members,$(IN_LIBRARY) $(LADDER_PARTS)))

$(LADDER): $(LADDER_OBJECTS) $(PIC)/parts.a
	$(call say,LD $@)
	@mkdir -p $(@D)
	$Q$(CC) $(ALL_CFLAGS) -shared $(if $(SANITIZE),,-Wl,-z,defs) -Wl,-rpath,'$$ORIGIN' $^ $(LIBS) -o $@
$(LADDER_PTX): $(IN_LIBRARY:%=$(PIC)/stages/%/embed_ptx.o) $(PIC)/members
	$(call say,LD $@)
	@mkdir -p $(@D)
	$Q$(CC) -shared $(filter %.o,$^) -o $@
# What the stages' launches may call. The linker takes only what they do call, so the emulator is not in the library.
$(PIC)/parts.a: $(LADDER_PARTS) $(PIC)/members
	@rm -f $@
	$Qar rcs $@ $(LADDER_PARTS)

# In the library each stage's symbols have its number: stage_03, stage_03_cubin.
SYMBOL = stage_$(call number,$*)
$(PIC)/%: RENAMED = -Dstage=$(SYMBOL) $(foreach end,ptx ptx_end cubin cubin_end,-Dstage_$(end)=$(SYMBOL)_$(end))
$(PIC)/stages/%.o: stages/%.c $(BUILD)/flags
	$(call say,CC $< for the library)
	@mkdir -p $(@D)
	$Q$(CC) $(ALL_CFLAGS) $(RENAMED) $(INCLUDE) -MMD -MP -c $< -o $@
$(PIC)/stages/%/embed.o: common/harness/embed.S $(PIC)/kernels/%.cubin
	$(EMBED)
$(PIC)/stages/%/embed_ptx.o: RENAMED += -DVISIBILITY=.protected
$(PIC)/stages/%/embed_ptx.o: common/harness/embed.S $(KERNELS)/%.ptx
	$(EMBED)
# The PTX without its lines, assembled once more, by the ptxas that made the kernels. $(KERNELS)/%.cubin is there because
# ptxas.sh has accepted it.
ASSEMBLER := $(or $(patsubst build/cuda12/%,build/cuda-%/bin/ptxas,$(filter build/cuda12/%,$(KERNELS))),$(NVCC))
$(PIC)/kernels/%.cubin: $(KERNELS)/%.ptx $(KERNELS)/%.cubin common/build/library.mk
	$(call say,PTXAS $< for the library)
	@mkdir -p $(@D)
	@sed '/^\t\.\(loc\|file\)\t/d' $< >$(@:.cubin=.ptx)
	$Q$(ASSEMBLER) $(if $(filter %ptxas,$(ASSEMBLER)),,-cubin) -arch=sm_90a $(@:.cubin=.ptx) -o $@ >$@.log 2>&1 || \
	  { cat $@.log; exit 1; } >&2
$(PIC)/common/%.o: common/%.c $(BUILD)/flags $(PIC)/members
	$(call say,CC $< for the library)
	@mkdir -p $(@D)
	$Q$(CC) $(ALL_CFLAGS) -D'STAGES(X)=$(foreach name,$(IN_LIBRARY),X($(call number,$(name))))' $(INCLUDE) \
	  -MMD -MP -c $< -o $@
