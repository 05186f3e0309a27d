# make install: hopper-run with its stand-ins, the emulator as a library for C and C++, and the stages as a library.
#
#   PREFIX/bin/hopper-run
#   PREFIX/lib/hopper-ladder/          the stand-ins for NVIDIA's libraries
#   PREFIX/lib/libhopper_emulator.a    with PREFIX/include/hopper-ladder/emulator.h
#   PREFIX/lib/libhopper_ladder.so     with PREFIX/include/hopper-ladder/hopper_ladder.h
#   PREFIX/lib/libhopper_ladder_ptx.so what hopper-run runs of it
#
# Another machine may run what is installed. So it is built once more, in build/portable, for any processor of the last ten
# years; make install ARCH=native installs what was built for this one.

PREFIX ?= /usr/local
PORTABLE := $(if $(filter x86_64,$(shell uname -m)),x86-64-v3,armv8-a)
INSTALLED = $(DESTDIR)$(PREFIX)
EMULATOR := $(BUILD)/libhopper_emulator.a

# One object, in which the functions of emulator.h alone are global: a program may have an `expect` of its own.
$(EMULATOR): $(filter $(BUILD)/common/emulator/%,$(call objects,common/emulator/*/*.c)) common/emulator/emulator.h
	$(call say,AR $@)
	@rm -f $@
	@grep -o '[a-z_]*(' common/emulator/emulator.h | tr -d '(' >$(@:.a=.names)
	$Q$(CC) -r -nostdlib $(filter %.o,$^) -o $(@:.a=.o)
	$Qobjcopy --keep-global-symbols=$(@:.a=.names) $(@:.a=.o)
	$Qar rcs $@ $(@:.a=.o)

test-programs: $(if $(SANITIZE),,$(EMULATOR))
test: export EMULATOR_LIBRARY = $(CURDIR)/$(EMULATOR)

install_files: $(HOPPER_RUN) $(STAND_INS) $(TOOLS) $(MODULES) $(EMULATOR) $(LADDER) $(LADDER_PTX)
	@install -d $(addprefix $(INSTALLED)/,bin lib/hopper-ladder/tools lib/hopper-ladder/python include/hopper-ladder)
	@install $(HOPPER_RUN) $(INSTALLED)/bin
	@install -m 644 $(STAND_INS) $(INSTALLED)/lib/hopper-ladder
	@install $(TOOLS) $(INSTALLED)/lib/hopper-ladder/tools
	@install -m 644 $(MODULES) $(INSTALLED)/lib/hopper-ladder/python
	@install -m 644 $(EMULATOR) $(LADDER) $(LADDER_PTX) $(INSTALLED)/lib
	@install -m 644 common/emulator/emulator.h common/library/hopper_ladder.h $(INSTALLED)/include/hopper-ladder
	@echo "installed hopper-run and the libraries in $(INSTALLED)"
install_portable:
	@$(MAKE) --no-print-directory install_files BUILD=build/portable ARCH=$(PORTABLE)
.PHONY: install_files install_portable
