# Draws the measured time of each stage beside the shortest times that the hardware allows for the work it does: a
# roofline with five roofs. Four panels, one for each head dimension with and without a causal mask, at sequence length
# 4096.
#
#   gnuplot -c plots/roofline.gp DATA.csv COUNTERS.csv OUTPUT
#
# writes OUTPUT.svg. DATA.csv is what the stages write with --csv on a GPU, COUNTERS.csv what `make
# counters` writes: the work of one head, counted by the emulator. Each bound is one resource's work over its rate, in
# percent of the measured time; the largest one binds, and is named. What a stage does beyond it is waiting: for memory,
# for barriers, for one resource while it uses another. Exits 1 with one line when there is nothing to draw.
if (ARGC != 3) {
  print "roofline.gp: usage: gnuplot -c plots/roofline.gp DATA.csv COUNTERS.csv OUTPUT"
  exit status 2
}
folder = ARG0[:strlen(ARG0) - strlen("roofline.gp")]
load folder . "style.gp"
call folder . "recording.gp" "roofline.gp" ARG2 \
  "stage batch heads seqlen head_dim causal smsp__inst_executed.sum inst_mufu tensor_flops " . \
  "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum " . \
  "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_atom.sum wgmma_shared_read_bytes cp_async_shared_write_bytes " . \
  "bulk_shared_write_bytes bulk_shared_read_bytes global_store_bytes bulk_global_write_bytes" "make counters"
call folder . "recording.gp" "roofline.gp" ARG1 \
  "stage device sm_clock_mhz driver cuda date batch heads seqlen head_dim causal median_ms repeats" \
  "on a Hopper GPU, make bench"

# ---- the rates ----

# Of an H200 or H100 SXM: 132 SMs, each with, in a clock, 4096 tensor-core operations (fp16, dense), 16 lanes of special
# functions, 128 bytes of shared memory and 4 warp instructions (CUDA C++ Programming Guide, "Arithmetic Instructions";
# Hopper tuning guide). Device memory: the rate of reading in plots/data/machine.
sms = 132
dram_rate = 4.56e12
array roof[5] = ["tensor", "exp", "shared", "issue", "device"]
array roof_name[5] = ["tensor cores", "exp", "shared memory", "issue", "device memory"]
array roof_colour[5] = [blue, orange, green, purple, ink]
array roof_mark[5] = [7, 9, 5, 13, 11]

# ---- work: that of one head, in clocks of all SMs; of device memory in seconds ----

seqlen = 4096
array work_name[256]
array work[5 * 256]
works = 0
key(stage) = stage . "," . int(column("head_dim")) . "," . int(column("causal"))
count(name) = column(name)
wavefronts(op) = count("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_" . op . ".sum")
shared_bytes(row) = 128 * (wavefronts("ld") + wavefronts("st") + wavefronts("atom")) + \
  count("wgmma_shared_read_bytes") + count("cp_async_shared_write_bytes") + \
  count("bulk_shared_write_bytes") + count("bulk_shared_read_bytes")
# Device memory at best: Q, K and V are read and O is written once, and what else is written (scores) is also read.
tensor_bytes(row) = 2 * seqlen * column("head_dim")
stored_bytes(row) = count("global_store_bytes") + count("bulk_global_write_bytes")
device_bytes(row) = 3 * tensor_bytes(0) + stored_bytes(0) + (stored_bytes(0) - tensor_bytes(0))
note_work(name) = (works = works + 1, work_name[works] = name, w = 5 * works, \
  work[w - 4] = count("tensor_flops") / 4096.0 / sms, work[w - 3] = count("inst_mufu") * 32.0 / 16 / sms, \
  work[w - 2] = shared_bytes(0) / 128.0 / sms, work[w - 1] = count("smsp__inst_executed.sum") / 4.0 / sms, \
  work[w] = device_bytes(0) / dram_rate, works)
is_one_head(row) = column("seqlen") == seqlen && column("batch") == 1 && column("heads") == 1
set table $work separator comma
plot path(ARG2) using (ok = is_one_head(0), ok ? note_work(key(strcol("stage"))) : 0) with table if (ok)
unset table
work_number(name) = sum [i = 1:works] (work_name[i] eq name ? i : 0)

# ---- times: those of the stages whose work is known ----

array names[64]
stages = 0
stage_number(name) = (found = sum [i = 1:stages] (names[i] eq name ? i : 0), \
                      found ? found : (stages = stages + 1, names[stages] = name, stages))
array time[4 * 64]
array bound[5 * 4 * 64]
do for [i = 1:4 * 64] { time[i] = 0 }
place(panel, stage) = 4 * (stage - 1) + panel
is_wanted(stage) = is_stage(stage) && is_of_pass(stage) && column("seqlen") == seqlen && column("median_ms") > 0 && \
                   work_number(key(stage)) > 0
# Milliseconds of each bound for all heads, at the clock that ran, where the row has it.
clock_ms(clocks) = clocks / ((clock_of(0) > 0 ? clock_of(0) : column("sm_clock_mhz")) * 1000.0)
note_time(t, heads, p, w) = (time[p] = t, \
  bound[5 * p - 4] = heads * clock_ms(work[w - 4]), bound[5 * p - 3] = heads * clock_ms(work[w - 3]), \
  bound[5 * p - 2] = heads * clock_ms(work[w - 2]), bound[5 * p - 1] = heads * clock_ms(work[w - 1]), \
  bound[5 * p] = heads * work[w] * 1000, t)
describe(row) = (device = strcol("device"), see_clock(clock_of(0)), highest_clock = strcol("sm_clock_mhz"), \
                 date = substr(strcol("date"), 1, 10), 0)
set table $times separator comma
plot path(ARG1) using (ok = is_wanted(strcol("stage")), ok ? describe(0) : 0, ok ? note_time(column("median_ms"), \
  column("batch") * column("heads"), place(panel(column("head_dim")), stage_number(strcol("stage"))), \
  5 * work_number(key(strcol("stage")))) : 0) with table if (ok)
unset table
if (stages == 0) {
  print sprintf("roofline.gp: no stage has both a time at sequence length %d in %s and its work in %s", \
                seqlen, ARG1, ARG2)
  exit status 1
}

# The bound that binds, and its share of the time.
share(p, r) = 100 * bound[5 * (p - 1) + r] / time[p]
largest(p) = (best = 1, sum [r = 1:5] (share(p, r) > share(p, best) ? (best = r, 0) : 0), best)
highest = 100
do for [p = 1:4 * stages] { if (time[p] > 0 && share(p, largest(p)) > highest) { highest = share(p, largest(p)) } }

# ---- the picture ----

row_height = 46
panel_height = row_height * stages
head = 172
height = head + 2 * panel_height + 150
from_top(pixels) = 1 - pixels / real(height)
key_x(r) = r == 1 ? 0.04 : r == 2 ? 0.25 : r == 3 ? 0.37 : r == 4 ? 0.61 : 0.74
clocks_assumed = clock_high > 0 ? clock_range("") . " MHz (measured)" : highest_clock . " MHz (the highest)"
texts = 'set label 1 "{/:Bold Roofline of the stages on one " . device . "}" at screen 0.03, screen from_top(26) \
    font ",19" textcolor rgb ink; \
  set label 2 sprintf("the least time for the work that the emulator counts, in %% of the measured time, S = %d", \
    seqlen) \
    at screen 0.03, screen from_top(52) font ",14" textcolor rgb grey; \
  set label 3 sprintf("%d SMs at %s, %.2f TB/s, %s, %s", sms, clocks_assumed, dram_rate / 1e12, date, runs) \
    at screen 0.03, screen from_top(74) font ",14" textcolor rgb grey; \
  do for [r = 1:5] { \
    set label 10 + r roof_name[r] at screen key_x(r) + 0.015, screen from_top(106) font ",14" \
      textcolor rgb roof_colour[r]; \
    set label 20 + r "" at screen key_x(r), screen from_top(106) point linecolor rgb roof_colour[r] \
      pointtype roof_mark[r] pointsize dot }'
number(t) = sprintf(t < 10 ? "%.2f ms" : "%.1f ms", t)
unset key
set border 1
set xrange [0:highest * 1.02]
set yrange [-0.5:stages - 0.5]
set xtics 0, 50
set format x "%g %%"
set grid xtics noytics
unset ytics
eval terminal(900, height)
set output path(ARG3 . ".svg")
set multiplot
do for [panel = 1:4] {
  beside = (panel + 1) % 2; below = panel > 2
  set lmargin at screen beside ? 0.622 : 0.242
  set rmargin at screen beside ? 0.858 : 0.478
  set tmargin at screen from_top(head + (below ? panel_height + 90 : 0))
  set bmargin at screen from_top(head + panel_height + (below ? panel_height + 90 : 0))
  set title "{/:Bold " . panel_title[panel] . "}" offset 0, -0.4 font ",15" textcolor rgb ink
  if (panel == 1) { eval texts }
  do for [s = 1:stages] {
    p = place(panel, s)
    if (!beside) { set label 1000 + s title_of(names[s]) . " " . number_of(names[s]) at graph 0, first s - 1 \
      right offset -1, 0 font ",13" textcolor rgb ink }
    if (time[p] > 0) {
      binds = largest(p)
      set object s rectangle from 0, s - 1 - 0.16 to 100, s - 1 + 0.16 behind \
        fillcolor rgb light fillstyle solid noborder
      set label 2000 + s sprintf("%s %.0f %%", roof[binds], share(p, binds)) at graph 1, first s - 1 + 0.17 \
        left offset 0.7, 0 font ",13" textcolor rgb roof_colour[binds]
      set label 3000 + s number(time[p]) at graph 1, first s - 1 - 0.23 \
        left offset 0.7, 0 font ",12" textcolor rgb grey
      do for [r = 1:5] {
        if (share(p, r) > 0) {
          set label 100 + 5 * s + r "" at share(p, r), s - 1 front point linecolor rgb roof_colour[r] \
            pointtype roof_mark[r] pointsize dot * (r == binds ? 1.3 : 0.9)
        }
      }
    }
  }
  plot NaN notitle
  unset label
  unset object
}
unset multiplot
unset output
