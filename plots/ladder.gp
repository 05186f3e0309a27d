# Draws the ladder: TFLOPS of each stage on a logarithmic scale, lowest rung first, and each stage's speedup over the
# one before.
#
#   gnuplot -c plots/ladder.gp DATA.csv OUTPUT [BATCH HEADS SEQLEN HEAD_DIM CAUSAL]
#
# writes OUTPUT.svg and OUTPUT.png. DATA.csv is what the stages write with --csv; the rows of one problem, named by the
# last five arguments, are drawn in the file's order: stages ("00-scalar") as rungs, others ("cuDNN") as lines to compare
# with. Exits 1 with one line when there is nothing to draw.
if (ARGC != 2 && ARGC != 7) {
  print "ladder.gp: usage: gnuplot -c plots/ladder.gp DATA.csv OUTPUT [BATCH HEADS SEQLEN HEAD_DIM CAUSAL]"
  exit status 2
}
batch = ARGC == 7 ? int(ARG3) : 4
heads = ARGC == 7 ? int(ARG4) : 32
seqlen = ARGC == 7 ? int(ARG5) : 4096
head_dim = ARGC == 7 ? int(ARG6) : 64
causal = ARGC == 7 ? int(ARG7) : 0
problem = sprintf("batch %d, %d heads, sequence length %d, head dim %d, %s", \
                  batch, heads, seqlen, head_dim, causal ? "causal mask" : "no mask")
load ARG0[:strlen(ARG0) - strlen("ladder.gp")] . "style.gp"

if (system(sprintf("test -s '%s' && echo yes", ARG1)) ne "yes") {
  print sprintf("ladder.gp: no recorded data in %s; on a Hopper GPU, make bench records it", ARG1)
  exit status 1
}

# $rungs: stage and TFLOPS of each row of the problem. The first of them says on what it was recorded.
set datafile separator ","
rungs = 0; low = 1e30; high = 0
is_wanted(t) = t > 0 && column("batch") == batch && column("heads") == heads && column("seqlen") == seqlen && \
               column("head_dim") == head_dim && column("causal") == causal
is_stage(name) = strstrt("0123456789", name[1:1]) > 0
add(t) = (rungs = rungs + 1, low = t < low ? t : low, high = t > high ? t : high, rungs == 1 ? describe(0) : 0, t)
describe(x) = (device = strcol("device"), \
               recorded = sprintf("SM clock %s MHz, driver %s, CUDA %s, %s, median of %s runs", strcol("sm_clock_mhz"), \
                                  strcol("driver"), strcol("cuda"), substr(strcol("date"), 1, 10), \
                                  strcol("repeats")), x)
set table $rungs separator comma
plot ARG1 using (ok = is_wanted(column("tflops")) && is_stage(strcol("stage")), strcol("stage")):(ok ? add(column("tflops")) : NaN) \
  with table if (ok)
unset table
peers = 0; fastest = 0
peer(t) = (peers = peers + 1, high = t > high ? t : high, fastest = t > fastest ? t : fastest, t)
set table $peers separator comma
plot ARG1 using (ok = is_wanted(column("tflops")) && !is_stage(strcol("stage")), strcol("stage")):(ok ? peer(column("tflops")) : NaN) \
  with table if (ok)
unset table
if (rungs == 0) {
  print sprintf("ladder.gp: %s has no row with %s", ARG1, problem)
  exit status 1
}

# The picture is as high as the ladder, so that the rungs are equally far apart in all of them.
height = 205 + 60 * rungs
from_top(pixels) = 1 - pixels / real(height)
set margins screen 0.32, screen 0.97, screen 80.0 / height, screen from_top(95)
set label 1 "{/:Bold Attention, forward pass, on one " . device . "}" at screen 0.03, screen from_top(26) \
  font ",19" textcolor rgb ink
set label 2 problem at screen 0.03, screen from_top(52) font ",14" textcolor rgb grey
set label 3 recorded at screen 0.03, screen from_top(74) font ",14" textcolor rgb grey

# The axis starts at the power of ten below the lowest rung and leaves room for the numbers on the right.
left = 10 ** floor(log10(low * 0.9))
right = high * 4 > left * 10 ? high * 4 : left * 10
set border 1
unset key
set grid xtics noytics
set logscale x
set xrange [left:right]
set yrange [-0.6:rungs - 0.4]
set xlabel "TFLOPS, logarithmic scale (more is better)"
set ytics scale 0
set xtics out ()
do for [decade = -4:4] {
  do for [digit in "1 2 5"] { set xtics add (sprintf("%g", digit * 10.0 ** decade) digit * 10.0 ** decade) }
}

name(stage) = stage[4:] . "  " . stage[1:2]
number(t) = sprintf(t < 10 ? "%.2f" : t < 100 ? "%.1f" : "%.0f", t)
# Numbers stand on white, so that no line runs through them.
set style textbox opaque fillcolor rgb "white" noborder margins 0.6, 0.3
# A peer is a line across, named at its foot, where the rungs are still far to the left; the fastest on its right.
do for [p = 1:peers] {
  comma = strstrt($peers[p], ",")
  time = real($peers[p][comma + 1:])
  set arrow p from time, graph 0 to time, graph 1 nohead back linecolor rgb green linewidth 2 dashtype 2
  name = $peers[p][:comma - 1] . " " . number(time)
  if (time == fastest) { set label 10 + p name at time, -0.35 left offset 0.7, 0 font ",14" textcolor rgb green }
  else { set label 10 + p name at time, -0.35 + 0.4 * (p - 1) right offset -0.7, 0 font ",14" textcolor rgb green }
}
# Half way from the rung before to this one; the first has no speedup.
middle(t) = (before = last, last = t, before > 0 ? sqrt(before * t) : t)
speedup(t) = before == 0 ? "" : sprintf(t / before < 9.95 ? "%.1fx" : "%.0fx", t / before)

do for [format in "svg png"] {
  eval "set terminal " . (format eq "svg" ? svg : png) . sprintf(" size %d,%d", 900 * scale(format), height * scale(format))
  set output ARG2 . "." . format
  last = 0
  plot $rungs using (left):0:($2 - left):(0):yticlabels(name(strcol(1))) notitle \
         with vectors nohead linecolor rgb light linewidth 2 dashtype 3, \
       $rungs using 2:0 notitle with lines linecolor rgb blue linewidth 2, \
       $rungs using 2:0 notitle with points linecolor rgb blue pointtype 7 pointsize dot(format), \
       $rungs using 2:0:(number($2)) notitle with labels left boxed offset 1.4, 0 font ",16" textcolor rgb blue, \
       $rungs using (middle($2)):($0 - 0.5):(speedup($2)) notitle \
         with labels left boxed offset 1.2, 0 font ",14" textcolor rgb orange
  unset output
}
