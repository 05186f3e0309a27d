# Draws how fast the last stage is on each kind of input, as a multiple of cuDNN's speed on the same tensors: a lane for
# each input, in it a line of marks for each head dimension with and without a causal mask, a mark for each sequence
# length, and beside the lane the geometric mean and the least.
#
#   gnuplot -c plots/inputs.gp DATA.csv OUTPUT
#
# writes OUTPUT.svg. DATA.csv is what peers.py records with --inputs. Exits 1 with one line when there is
# nothing to draw.
if (ARGC != 2) {
  print "inputs.gp: usage: gnuplot -c plots/inputs.gp DATA.csv OUTPUT"
  exit status 2
}
folder = ARG0[:strlen(ARG0) - strlen("inputs.gp")]
load folder . "style.gp"
call folder . "recording.gp" "inputs.gp" ARG1 \
  "stage device sm_clock_mhz driver cuda date batch heads seqlen head_dim causal repeats tflops mode input" \
  "on a Hopper GPU, make peers OPTIONS='--inputs=all --stages=10'"

# ---- $peer: the rows of cuDNN; $ratios: input, panel (1 to 4) and ratio of each problem of the last stage ----

yardstick = "cuDNN"
is_wanted(t) = t > 0 && strcol("mode") eq "cold" && (column("head_dim") == 64 || column("head_dim") == 128)
key(row) = sprintf("%s %s %s %s %s %s", strcol("input"), strcol("batch"), strcol("heads"), strcol("seqlen"), \
                   strcol("head_dim"), strcol("causal"))
array keys[4096]
array speed[4096]
rows = 0
last = ""
rung = 0
# 10900 for "09", and 10902 for "09b"; "09" alone would be an octal number.
rung_of(name) = is_stage(name) ? 100 * int("1" . name[1:2]) + strstrt("abcdefghijklmnopqrstuvwxyz", name[3:3]) : 0
note(name, t) = (rung_of(name) > rung ? (rung = rung_of(name), last = name) : 0, \
                 name eq yardstick ? (rows = rows + 1, keys[rows] = key(0), speed[rows] = t) : t)
set table $peer separator comma
plot path(ARG1) using (ok = is_wanted(column("tflops")), ok ? note(strcol("stage"), column("tflops")) : NaN) with table
unset table

of_yardstick(key) = sum [i = 1:rows] (keys[i] eq key ? speed[i] : 0)
array names[64]
array mean[64]
array count[64]
array least[64]
lanes = 0
number(name) = (found = sum [i = 1:lanes] (names[i] eq name ? i : 0), found ? found : (lanes = lanes + 1, \
                names[lanes] = name, mean[lanes] = 0, count[lanes] = 0, least[lanes] = 1e30, lanes))
low = 1; high = 1
add(lane, ratio) = (device = strcol("device"), recorded = where(0), mean[lane] = mean[lane] + log(ratio), \
                    count[lane] = count[lane] + 1, least[lane] = ratio < least[lane] ? ratio : least[lane], \
                    low = ratio < low ? ratio : low, high = ratio > high ? ratio : high, ratio)
is_last(t) = is_wanted(t) && strcol("stage") eq last && of_yardstick(key(0)) > 0
set table $ratios separator comma
plot path(ARG1) using (ok = is_last(column("tflops")), ok ? (lane = number(strcol("input"))) : NaN): \
  (panel(column("head_dim"))):(ok ? add(lane, column("tflops") / of_yardstick(key(0))) : NaN) with table if (ok)
unset table
if (lanes == 0) {
  print sprintf("inputs.gp: %s has no problem on which both a stage and %s were timed", ARG1, yardstick)
  exit status 1
}

# ---- the picture is as high as it has lanes ----

meaning(name) = name eq "normal" ? "deviation 1" : name eq "large" ? "normal, times eight" : \
                name eq "sink" ? "one key far above all" : name eq "ramp" ? "scores grow along the keys" : \
                name eq "rampdown" ? "scores fall along the keys" : name eq "waves" ? "low and high keys by turns" : \
                name eq "outliers" ? "some elements ten times as large" : name eq "mean" ? "the mean of V is 1" : ""
height = 242 + 84 * lanes
from_top(pixels) = 1 - pixels / real(height)
set margins screen 0.29, screen 0.84, screen 76.0 / height, screen from_top(166)
set label 1 "{/:Bold Stage " . full(last) . " on other inputs, on one " . device . "}" \
  at screen 0.03, screen from_top(26) font ",19" textcolor rgb ink
set label 2 "a mark for each sequence length" at screen 0.03, screen from_top(52) font ",14" textcolor rgb grey
set label 3 recorded at screen 0.03, screen from_top(74) font ",14" textcolor rgb grey
set label 4 "mean" at screen 0.86, screen from_top(150) font ",14" textcolor rgb grey
set label 5 "least" at screen 0.93, screen from_top(150) font ",14" textcolor rgb grey

panel_colour(p) = p <= 2 ? blue : orange
panel_mark(p) = p == 1 ? 7 : p == 2 ? 6 : p == 3 ? 5 : 4
set border 1
unset key
set grid xtics noytics
set xrange [floor((low - 0.02) * 20) / 20.0:ceil((high + 0.02) * 20) / 20.0]
set yrange [lanes - 0.5:-0.5]
set xlabel "times as fast as " . yardstick
set xtics out
unset ytics
set arrow 1 from 1, graph 0 to 1, graph 1 nohead back linecolor rgb green linewidth 2
do for [i = 1:lanes] {
  set label 10 + i "{/:Bold " . names[i] . "}" at screen 0.275, first i - 1.12 right font ",16" textcolor rgb ink
  set label 30 + i meaning(names[i]) at screen 0.275, first i - 0.86 right font ",12" textcolor rgb grey
  set label 50 + i sprintf("%.2f", exp(mean[i] / count[i])) at screen 0.86, first i - 1 font ",16" textcolor rgb ink
  set label 70 + i sprintf("%.2f", least[i]) at screen 0.93, first i - 1 font ",16" \
    textcolor rgb (least[i] < 1 ? orange : ink)
  if (i > 1) { set arrow 10 + i from graph 0, first i - 1.5 to graph 1, first i - 1.5 nohead back linecolor rgb light }
}
line(p) = (p - 2.5) * 0.19

eval terminal(900, height)
set output path(ARG2 . ".svg")
do for [p = 1:4] {
  set label 90 + p panel_title[p] at screen 0.04 + 0.33 * ((p + 1) % 2), screen from_top(p <= 2 ? 106 : 130) \
    font ",14" textcolor rgb panel_colour(p) offset 1, 0 \
    point linecolor rgb panel_colour(p) pointtype panel_mark(p) pointsize dot
}
plot for [p = 1:4] $ratios using ($2 == p ? $3 : NaN):($1 - 1 + line(p)) \
  with points linecolor rgb panel_colour(p) pointtype panel_mark(p) pointsize dot
unset output
