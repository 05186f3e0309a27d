# make install: hopper-run with its stand-ins, the emulator as a library for C and C++, and the stages as a library.
#
#   PREFIX/bin/hopper-run
#   PREFIX/lib/hopper-ladder/          the stand-ins for NVIDIA's libraries
#   PREFIX/lib/libhopper_emulator.a    with PREFIX/include/hopper-ladder/emulator.h
#   PREFIX/lib/libhopper_ladder.so     with PREFIX/include/hopper-ladder/hopper_ladder.h

PREFIX ?= /usr/local
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

install_files: $(HOPPER_RUN) $(STAND_INS) $(EMULATOR) $(LADDER)
	@install -d $(addprefix $(INSTALLED)/,bin lib/hopper-ladder include/hopper-ladder)
	@install $(HOPPER_RUN) $(INSTALLED)/bin
	@install -m 644 $(STAND_INS) $(INSTALLED)/lib/hopper-ladder
	@install -m 644 $(EMULATOR) $(LADDER) $(INSTALLED)/lib
	@install -m 644 common/emulator/emulator.h common/library/hopper_ladder.h $(INSTALLED)/include/hopper-ladder
	@echo "installed hopper-run and the libraries in $(INSTALLED)"
.PHONY: install_files
