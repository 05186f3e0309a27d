# Draws the ladder: TFLOPS of each stage on a logarithmic scale, lowest rung first, and each stage's speedup over the
# one before. Above the ladder stand the peers, slowest first, each with a line down across the rungs.
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
heads = ARGC == 7 ? int(ARG4) : 32
seqlen = ARGC == 7 ? int(ARG5) : 4096
head_dim = ARGC == 7 ? int(ARG6) : 64
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
rungs = 0; peers = 0; low = 1e30; high = 0
is_wanted(t) = t > 0 && column("batch") == batch && column("heads") == heads && column("seqlen") == seqlen && \
               column("head_dim") == head_dim && column("causal") == causal
note(name, t) = (device = strcol("device"), recorded = where(0), \
                 low = t < low ? t : low, high = t > high ? t : high, \
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

# ---- the picture is as high as the ladder, so that the rungs are equally far apart in all of them ----

peer_step = 0.7 # of a rung's distance
height = 205 + 60 * rungs + (peers ? 60 * (peer_step * peers + 0.3) : 0)
from_top(pixels) = 1 - pixels / real(height)
set margins screen 0.32, screen 0.97, screen 80.0 / height, screen from_top(95)
set label 1 "{/:Bold Attention, forward pass, on one " . device . "}" at screen 0.03, screen from_top(26) \
  font ",19" textcolor rgb ink
set label 2 problem at screen 0.03, screen from_top(52) font ",14" textcolor rgb grey
set label 3 recorded at screen 0.03, screen from_top(74) font ",14" textcolor rgb grey

# The axis starts at the power of ten below the lowest rung and leaves room for the numbers on the right.
left = 10 ** floor(log10(low * 0.9))
right = high * 3 > left * 10 ? high * 3 : left * 10
set border 1
unset key
set grid xtics noytics
set logscale x
set xrange [left:right]
set yrange [-0.6:rungs - 0.4 + (peers ? peer_step * peers + 0.3 : 0)]
set xlabel "TFLOPS, logarithmic scale (more is better)"
set ytics scale 0 ()
set xtics out ()
do for [decade = -4:4] {
  do for [digit in "1 2 5"] { set xtics add (sprintf("%g", digit * 10.0 ** decade) digit * 10.0 ** decade) }
}

number(t) = sprintf(t < 10 ? "%.2f" : t < 100 ? "%.1f" : "%.0f", t)
do for [i = 1:rungs] { set ytics add (title_of(names[i]) . "  " . number_of(names[i]) i - 1) }
# Numbers stand on white, so that no line runs through them.
set style textbox opaque fillcolor rgb "white" noborder margins 0.6, 0.3
# How many peers are slower.
rank(p) = sum [q = 1:peers] (peer[q] < peer[p] || (peer[q] == peer[p] && q < p))
peer_y(p) = rungs - 0.1 + peer_step * rank(p)
do for [p = 1:peers] {
  set arrow p from peer[p], graph 0 to peer[p], first peer_y(p) nohead back linecolor rgb green linewidth 2 dashtype 2
  set label 10 + p peer_name[p] at graph 0, first peer_y(p) right offset -1.2, 0 textcolor rgb green
}
# Half way from the rung before to this one; the first has no speedup.
middle(t) = (before = last, last = t, before > 0 ? sqrt(before * t) : t)
times(x) = sprintf(x < 1.995 ? "%.2fx" : x < 9.95 ? "%.1fx" : "%.0fx", x)
speedup(t) = before == 0 ? "" : times(t / before)

eval terminal(900, height)
set output path(ARG2 . ".svg")
do for [p = 1:peers] {
  set label 20 + p number(peer[p]) at peer[p], peer_y(p) left offset 1.4, 0 front font ",16" textcolor rgb green boxed
  set label 40 + p "" at peer[p], peer_y(p) point linecolor rgb green pointtype 13 pointsize dot
}
last = 0
plot $rungs using (left):0:($1 - left):(0) notitle \
       with vectors nohead linecolor rgb light linewidth 2 dashtype 3, \
     $rungs using 1:0 notitle with lines linecolor rgb blue linewidth 2, \
     $rungs using 1:0 notitle with points linecolor rgb blue pointtype 7 pointsize dot, \
     $rungs using 1:0:(number($1)) notitle with labels left boxed offset 1.4, 0 font ",16" textcolor rgb blue, \
     $rungs using (middle($1)):($0 - 0.5):(speedup($1)) notitle \
       with labels left boxed offset 1.2, 0 font ",14" textcolor rgb orange
unset output
