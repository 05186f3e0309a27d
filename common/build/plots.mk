# The plots of what is recorded in plots/data: times in DEVICE.csv, those beside PyTorch's in DEVICE-peers.csv, on other
# inputs in DEVICE-inputs.csv, counts in counters.csv, time stamps in trace/*.csv.gz; `make plot` draws those of which
# there is a picture. And the pictures of what has no recording. The backward pass is in DEVICE-backward.csv, the FP8
# stages are in DEVICE-e4m3.csv. The times of both on other inputs, in DEVICE-e4m3-inputs.csv and
# DEVICE-backward-inputs.csv, have no plot. Decode is in decode/DEVICE-peers.csv.

RECORDINGS := $(patsubst plots/data/%.csv,plots/%, \
  $(filter-out %-peers.csv %-inputs.csv %-e4m3.csv %-backward.csv %/counters.csv,$(wildcard plots/data/*.csv)))
TRACES := $(patsubst plots/data/trace/%.csv.gz,build/plots/%.csv,$(wildcard plots/data/trace/stage-*.csv.gz))
# The stages whose timelines lesson 09 shows in one picture.
COMPARED := $(filter $(foreach n,06 07 08 09,%/stage-$n.csv),$(TRACES))
PLOTS := $(foreach r,$(RECORDINGS),$r-ladder.svg $r-seqlen.svg $r-roofline.svg) \
  $(patsubst plots/data/%.csv,plots/%.svg, \
    $(filter-out %-e4m3-inputs.csv %-backward-inputs.csv,$(wildcard plots/data/*-peers.csv plots/data/*-inputs.csv))) \
  $(patsubst plots/data/%.csv,plots/%.svg,$(wildcard plots/data/*-backward.csv plots/data/*-e4m3.csv)) \
  $(patsubst plots/data/decode/%-peers.csv,plots/%-decode.svg,$(wildcard plots/data/decode/*-peers.csv)) \
  $(wildcard plots/trace-*.svg) \
  $(if $(word 4,$(COMPARED)),plots/timelines.svg) $(wildcard plots/figure-*.svg)

# Stage 21 for plots/windows.py, which calls it inside PyTorch.
$(BUILD)/libwindow.so: $(call objects,plots/windowed.c stages/21-window/*.c) $(BUILD)/stages/21-window/embed.o $(LIBRARY)
	$(call say,LD $@)
	$Q$(CC) $(ALL_CFLAGS) -shared $^ $(LIBS) -o $@

# The kernels that read and compute nothing, for plots/decode_peers.py.
$(BUILD)/libread.so: $(BUILD)/plots/read_rate.o $(BUILD)/stages/13-decode/embed.o $(LIBRARY)
	$(call say,LD $@)
	$Q$(CC) $(ALL_CFLAGS) -shared $^ $(LIBS) -o $@

define DRAW
$(call say,PLOT $@)
$Qgnuplot -c $(filter %.gp,$<) $(filter %.csv,$^) $(@:.svg=)
$Qpython3 plots/lean_svg.py $@
endef
LOOK := plots/style.gp plots/recording.gp plots/lean_svg.py
plots/%-ladder.svg: plots/ladder.gp plots/data/%.csv $(LOOK) | build/have/gnuplot
	$(DRAW)
plots/%-seqlen.svg: plots/seqlen.gp plots/data/%.csv $(LOOK) | build/have/gnuplot
	$(DRAW)
plots/%-peers.svg: plots/seqlen.gp plots/data/%-peers.csv $(LOOK) | build/have/gnuplot
	$(DRAW)
plots/%-e4m3.svg: plots/seqlen.gp plots/data/%-e4m3.csv $(LOOK) | build/have/gnuplot
	$(DRAW)
plots/%-backward.svg: plots/seqlen.gp plots/data/%-backward.csv $(LOOK) | build/have/gnuplot
	$(DRAW)
plots/%-inputs.svg: plots/inputs.gp plots/data/%-inputs.csv $(LOOK) | build/have/gnuplot
	$(DRAW)
plots/%-decode.svg: plots/decode.gp plots/data/decode/%-peers.csv $(LOOK) | build/have/gnuplot
	$(DRAW)
plots/%-roofline.svg: plots/roofline.gp plots/data/%.csv plots/data/counters.csv $(LOOK) | build/have/gnuplot
	$(DRAW)
plots/timelines.svg: plots/timeline.gp $(COMPARED) $(LOOK) | build/have/gnuplot
	$(call say,PLOT $@)
	$Qgnuplot -c $< $(firstword $(COMPARED)) $(@:.svg=) -5000 3000 $(wordlist 2,4,$(COMPARED))
	$Qpython3 plots/lean_svg.py $@
plots/trace-%.svg: plots/timeline.gp build/plots/stage-%.csv $(LOOK) | build/have/gnuplot
	$(DRAW)
build/plots/%.csv: plots/data/trace/%.csv.gz
	@mkdir -p $(@D)
	@gzip -dc $< >$@
plots/figure-%.svg: plots/figures.py plots/first_figures.py plots/summit_figures.py plots/last_figures.py plots/picture.py
	$(call say,PLOT $@)
	$Qpython3 $<
