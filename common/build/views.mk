# Ways to look at one stage. A number that no stage has is an error in one line.

VIEWS := trace profile sanitize ptx sass diff read answers
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
	@sh common/build/diff.sh $* $(BELOW_$(filter $*-%,$(NAMES)))
$(NUMBERS:%=read-%): read-%:
	@sh common/build/read.sh read $*
$(NUMBERS:%=answers-%): answers-%:
	@sh common/build/read.sh answers $*

UNKNOWN := $(filter-out $(foreach view,stage $(VIEWS),$(NUMBERS:%=$(view)-%)), \
  $(filter stage-% $(VIEWS:%=%-%),$(MAKECMDGOALS)))
$(UNKNOWN):
	@echo 'make $@: there is no such stage; there are $(NUMBERS)' >&2; exit 2
.PHONY: $(foreach view,$(VIEWS),$(NUMBERS:%=$(view)-%)) $(UNKNOWN)
