# Draws the ladder: a bar for the TFLOPS of each stage, lowest rung first, its idea and its speedup over the one below.
# Above the ladder stand the peers, slowest first, each with a line down across the rungs.
#
#   gnuplot -c plots/ladder.gp DATA.csv OUTPUT [BATCH HEADS SEQLEN HEAD_DIM CAUSAL]
#
# writes OUTPUT.svg. DATA.csv is what the stages write with --csv; the rows of one problem, named by the
# last five arguments, are drawn: stages ("00-scalar") as rungs, in the file's order, others ("cuDNN") as peers. Exits 1
# with one line when there is nothing to draw.
if (ARGC != 2 && ARGC != 7) {
  print "ladder.gp: usage: gnuplot -c plots/ladder.gp DATA.csv OUTPUT [BATCH HEADS SEQLEN HEAD_DIM CAUSAL]"
  exit status 2
}
batch = ARGC == 7 ? int(ARG3) : 4
heads = ARGC == 7 ? int(ARG4) : 16
seqlen = ARGC == 7 ? int(ARG5) : 4096
head_dim = ARGC == 7 ? int(ARG6) : 128
causal = ARGC == 7 ? int(ARG7) : 0
problem = sprintf("batch %d, %d heads, sequence length %d, head dim %d, %s", \
                  batch, heads, seqlen, head_dim, causal ? "causal mask" : "no mask")
folder = ARG0[:strlen(ARG0) - strlen("ladder.gp")]
load folder . "style.gp"
call folder . "recording.gp" "ladder.gp" ARG1 \
  "stage device sm_clock_mhz driver cuda date batch heads seqlen head_dim causal repeats tflops" \
  "on a Hopper GPU, make bench"

# ---- $rungs: TFLOPS of each stage of the problem; names: theirs. peer, peer_name: those of the peers ----

array names[64]
array peer[64]
array peer_name[64]
rungs = 0; peers = 0; high = 0
has_mode = strstrt(header, ",mode")
is_wanted(t) = t > 0 && is_of_pass(strcol("stage")) && (!has_mode || strcol("mode") eq "cold") && \
               column("batch") == batch && column("heads") == heads && column("seqlen") == seqlen && \
               column("head_dim") == head_dim && column("causal") == causal
note(name, t) = (device = strcol("device"), recorded = where(0), \
                 high = t > high ? t : high, \
                 is_stage(name) ? (rungs = rungs + 1, names[rungs] = name) \
                                : (peers = peers + 1, peer_name[peers] = name, peer[peers] = t), t)
set table $rungs separator comma
plot path(ARG1) using (ok = is_wanted(column("tflops")), ok ? note(strcol("stage"), column("tflops")) : NaN) \
  with table if (ok && is_stage(strcol("stage")))
unset table
if (rungs == 0) {
  print sprintf("ladder.gp: %s has no row of a stage with %s", ARG1, problem)
  exit status 1
}

# What each rung is about, in a few words; one that is not here has its name alone.
idea(number) = \
  number eq "00" ? "plain loops; scores in device memory" : \
  number eq "00b" ? "tiles in shared memory" : \
  number eq "01" ? "QKᵀ on the tensor cores" : \
  number eq "01b" ? "PV on the tensor cores" : \
  number eq "02" ? "one kernel: scores never leave the SM" : \
  number eq "02b" ? "scores stay in registers" : \
  number eq "02c" ? "half the instructions of the softmax" : \
  number eq "02d" ? "shared memory without bank conflicts" : \
  number eq "02e" ? "each fragment serves two products" : \
  number eq "03" ? "tiles are copied while others are used" : \
  number eq "05" ? "four warps multiply as one" : \
  number eq "06" ? "a copy engine loads whole tiles" : \
  number eq "07" ? "one warp loads, the others compute" : \
  number eq "07b" ? "registers go where they are needed" : \
  number eq "08" ? "softmax while a product runs" : \
  number eq "08b" ? "warpgroups take turns" : \
  number eq "08c" ? "the copy engine stores, too" : \
  number eq "09" ? "blocks stay and take more tiles" : \
  number eq "09b" ? "half tiles on a mask's diagonal" : \
  number eq "10" ? "no search for the maximum" : \
  number eq "12" ? "two passes, seven products" : \
  number eq "12b" ? "one pass; dQ meets in memory" : \
  number eq "12c" ? "a warpgroup of its own for dQ" : \
  number eq "12d" ? "dK a tile late" : \
  number eq "12e" ? "one signal for two things" : ""
# wgmma and TMA are Hopper's own; Ampere has what the rungs below use.
is_hopper(name) = !strstrt("00 01 02 03", name[1:2])

# ---- the picture is as high as the ladder, so that the rungs are equally far apart in all of them ----

peer_step = 0.75 # of a rung's distance
rung = 42 # pixels
peer_room = peers ? peer_step * peers + 0.2 : 0
height = 215 + rung * (rungs + peer_room)
from_top(pixels) = 1 - pixels / real(height)
left_edge = 0.40
set margins screen left_edge, screen 0.97, screen 80.0 / height, screen from_top(135)
set label 1 "{/:Bold Attention, " . pass . " pass, on one " . device . "}" at screen 0.03, screen from_top(26) \
  font ",19" textcolor rgb ink
set label 2 problem at screen 0.03, screen from_top(52) font ",14" textcolor rgb grey
set label 3 recorded at screen 0.03, screen from_top(74) font ",14" textcolor rgb grey
set object 1 rectangle from screen 0.03, screen from_top(110) to screen 0.05, screen from_top(94) \
  fillcolor rgb sky fillstyle solid noborder
set label 4 "instructions that older GPUs have, too" at screen 0.06, screen from_top(102) font ",14" textcolor rgb ink
set object 2 rectangle from screen 0.50, screen from_top(110) to screen 0.52, screen from_top(94) \
  fillcolor rgb blue fillstyle solid noborder
set label 5 "Hopper's own: wgmma, TMA" at screen 0.53, screen from_top(102) font ",14" textcolor rgb ink
set label 6 "1.1x: against the stage below" at screen 0.03, screen from_top(126) font ",14" textcolor rgb orange

set border 1
unset key
set grid xtics noytics
set xrange [0:high * 1.28]
set yrange [-0.6:rungs - 0.4 + peer_room]
set xlabel "TFLOPS (more is better)"
unset ytics
set xtics out

number(t) = sprintf(t < 10 ? "%.2f" : t < 100 ? "%.1f" : "%.0f", t)
do for [i = 1:rungs] {
  idea_text = idea(number_of(names[i]))
  set label 100 + i title_of(names[i]) . "  " . number_of(names[i]) \
    at graph 0, first i - 1 + (idea_text eq "" ? 0 : 0.21) right offset -1, 0 font ",14" textcolor rgb ink
  set label 200 + i idea_text at graph 0, first i - 1 - 0.21 right offset -1, 0 font ",12" textcolor rgb grey
}
set style fill solid 1 border rgb "white"
# Numbers stand on white, so that no line runs through them. (Boxed labels would need a filter of SVG, which not every
# program has.) A letter of the speedup is 11 pixels wide, and a digit of the other numbers 12.
pixels(n) = n * high * 1.28 / (900 * (0.97 - left_edge))
# How many peers are slower.
rank(p) = sum [q = 1:peers] (peer[q] < peer[p] || (peer[q] == peer[p] && q < p))
peer_y(p) = rungs - 0.2 + peer_step * rank(p)
do for [p = 1:peers] {
  set label 10 + p peer_name[p] at graph 0, first peer_y(p) right offset -1, 0 font ",14" textcolor rgb green
  set label 20 + p number(peer[p]) at peer[p], peer_y(p) left offset 1.2, 0 front font ",15" textcolor rgb green
  set object 10 + p rectangle from peer[p] + pixels(10), peer_y(p) - 0.25 \
    to peer[p] + pixels(14 + 12 * strlen(number(peer[p]))), peer_y(p) + 0.25 front fillcolor rgb "white" \
    fillstyle solid noborder
  set label 40 + p "" at peer[p], peer_y(p) point linecolor rgb green pointtype 13 pointsize dot
}
times(x) = sprintf(x < 1.995 ? "%.2fx" : x < 9.95 ? "%.1fx" : "%.0fx", x)
# The speedup of rung i, counted from 0; the first has none.
speedup(i, t) = (before = i ? last : 0, last = t, before == 0 ? "" : times(t / before))
end_of_text(i, t) = (text = speedup(i, t), strlen(text) ? 62 + 11 * strlen(text) : 10 + 12 * strlen(number(t)))
rgb_number(name) = int(real("0x" . name[2:]))
bar_colour(i) = rgb_number(is_hopper(names[i + 1]) ? blue : sky)

eval terminal(900, height)
set output path(ARG2 . ".svg")
last = 0
plot $rungs using ($1 / 2):0:(0):1:($0 - 0.34):($0 + 0.34):(bar_colour(int($0))) notitle \
       with boxxyerror linewidth 0.5 linecolor rgb variable, \
     for [p = 1:peers] $rungs every ::0::0 using (peer[p]):(-0.6):(0):(peer_y(p) + 0.6) notitle \
       with vectors nohead linecolor rgb green linewidth 2 dashtype 2, \
     $rungs using 1:0:($1 + pixels(3)):($1 + pixels(end_of_text(int($0), $1))):($0 - 0.3):($0 + 0.3) notitle \
       with boxxyerror fillcolor rgb "white" linecolor rgb "white", \
     $rungs using 1:0:(number($1)) notitle with labels left offset 0.8, 0 font ",15" textcolor rgb ink, \
     $rungs using 1:0:(speedup(int($0), $1)) notitle with labels left offset 6, 0 font ",14" textcolor rgb orange
unset output
