# Draws TFLOPS against the sequence length: four panels, one for each head dimension with and without a causal mask.
#
#   gnuplot -c plots/seqlen.gp DATA.csv OUTPUT
#
# writes OUTPUT.svg. DATA.csv is what the stages write with --csv, or peers.py; of it the rows of 16384
# tokens and a model width of 2048 are drawn, as `make bench` records them. The last three stages stand out, those below
# are thin and grey, peers ("cuDNN") are dashed; each line has its name at its end. Exits 1 with one line when there is
# nothing to draw.
if (ARGC != 2) {
  print "seqlen.gp: usage: gnuplot -c plots/seqlen.gp DATA.csv OUTPUT"
  exit status 2
}
folder = ARG0[:strlen(ARG0) - strlen("seqlen.gp")]
load folder . "style.gp"
call folder . "recording.gp" "seqlen.gp" ARG1 \
  "stage device sm_clock_mhz driver cuda date batch heads seqlen head_dim causal repeats tflops" \
  "on a Hopper GPU, make bench"

# ---- $points: panel (1 to 4), line, sequence length and TFLOPS of each row; names: those of the lines ----

tokens = 16384
width = 2048
# Where peers.py says how it measured, only runs with a cold L2 cache are like those of the stages.
has_mode = strstrt(header, ",mode")
is_wanted(head_dim, seqlen) = column("tflops") > 0 && is_of_pass(strcol("stage")) && \
  (!has_mode || strcol("mode") eq "cold") && \
  (head_dim == 64 || head_dim == 128) && \
  column("heads") * head_dim == width && column("batch") == (seqlen < tokens ? tokens / int(seqlen) : 1)
array names[64]
lines = 0
number(name) = (found = sum [i = 1:lines] (names[i] eq name ? i : 0), \
                found ? found : (lines = lines + 1, names[lines] = name, lines))
# Where each line ends in each panel, at the longest sequence: its TFLOPS, 0 where it has none.
array end_seqlen[4 * 64]
array end[4 * 64]
do for [i = 1:4 * 64] { end_seqlen[i] = 0; end[i] = 0 }
place(panel, line) = 4 * (line - 1) + panel
shortest = 1e30; longest = 0; highest = 0
note(place, s, t) = (shortest = s < shortest ? s : shortest, longest = s > longest ? s : longest, \
                     highest = t > highest ? t : highest, \
                     s >= end_seqlen[place] ? (end_seqlen[place] = s, end[place] = t) : 0, t)
describe(row) = (device = strcol("device"), recorded = where(0), 0)
set table $points separator comma
plot path(ARG1) using (ok = is_wanted(column("head_dim"), column("seqlen")), ok ? describe(0) : 0, \
                 p = panel(column("head_dim"))): \
  (ok ? (l = number(strcol("stage"))) : 0):(s = column("seqlen")):(ok ? note(place(p, l), s, column("tflops")) : 0) \
  with table if (ok)
unset table
if (lines == 0) {
  print sprintf("seqlen.gp: %s has no row with batch x sequence length = %d and heads x head dim = %d", \
                ARG1, tokens, width)
  exit status 1
}

# ---- how each line looks: the newest stages in colour, the others grey, the peers green and dashed ----

stages = sum [i = 1:lines] is_stage(names[i])
stages_before(line) = sum [i = 1:line] is_stage(names[i])
# 1: the last stage, 2: the one before; 0: a peer.
age(line) = is_stage(names[line]) ? stages - stages_before(line) + 1 : 0
dash(line) = is_stage(names[line]) ? 1 : 2 + (line - stages_before(line) - 1) % 4
stands_out(line) = age(line) >= 1 && age(line) <= 3
label_colour(line) = stands_out(line) || age(line) == 0 ? colour(line) : grey
colour(line) = age(line) == 0 ? green : \
  age(line) == 1 ? blue : age(line) == 2 ? orange : age(line) == 3 ? purple : faint
thickness(line) = stands_out(line) ? 3 : age(line) == 0 ? 2 : 1
mark(line) = age(line) == 1 ? 7 : age(line) == 2 ? 5 : 9

# ---- the head of the picture, with the names in full of what stands out and of the peers ----

# A panel is as high as the labels of its lines need, one above the other.
panel_height = lines > 14 ? 22 * lines : 308
height = 349 + 2 * panel_height
from_top(pixels) = 1 - pixels / real(height)
# Text has no width before it is drawn: 12 pixels a letter is what a wide sans-serif takes.
x = 27.0
coloured = ""; dashed = ""
array key_x[64]
do for [line = 1:lines] {
  if (stands_out(line)) {
    coloured = coloured . " " . line
    key_x[line] = x / 900
    x = x + 12 * strlen(full(names[line])) + 26
  }
  if (age(line) == 0) { dashed = dashed . (dashed eq "" ? "dashed: " : ", ") . meaning(names[line]) }
}
head = 'set label 1 "{/:Bold Attention, " . pass . " pass, on one " . device . "}" at screen 0.03, screen from_top(26) \
    font ",19" textcolor rgb ink; \
  set label 2 sprintf("batch x sequence length = %d, heads x head dim = %d", tokens, width) \
    at screen 0.03, screen from_top(52) font ",14" textcolor rgb grey; \
  set label 3 recorded at screen 0.03, screen from_top(74) font ",14" textcolor rgb grey; \
  do for [line in coloured] { set label 10 + line "{/:Bold " . full(names[int(line)]) . "}" \
    at screen key_x[int(line)], screen from_top(108) font ",14" textcolor rgb colour(int(line)) }; \
  set label 4 (stages > 3 ? "grey: below" : "") at screen x / 900, screen from_top(108) font ",14" \
    textcolor rgb grey; \
  set label 5 dashed at screen 0.03, screen from_top(132) font ",14" textcolor rgb green'

# ---- one panel ----

# The scale, the same in all panels, ends at a round number.
decade = 10.0 ** floor(log10(highest))
step = highest / decade > 5 ? 2 * decade : highest / decade > 2 ? decade : decade / 2
top = ceil(highest * 1.02 / (step / 2)) * step / 2
size(seqlen) = seqlen < 1024 || seqlen % 1024 ? sprintf("%d", seqlen) : sprintf("%dk", seqlen / 1024)

# Labels keep their lines' order and lie at least `gap` apart: neighbours that are closer push each other away.
array order[64]
array level[64]
gap = 0.062 * 308 / panel_height * top
lower(p, line) = sum [other = 1:lines] (end[place(p, other)] > 0 && (end[place(p, other)] < end[place(p, line)] || \
                                        (end[place(p, other)] == end[place(p, line)] && other < line)))
# The plot command's part that draws a line, and its points.
data(p, line) = sprintf(", $points using ($1 == %d && $2 == %d ? $3 : NaN):4", p, line)
curve(p, line) = data(p, line) . " smooth unique notitle with lines" . \
  sprintf(" linecolor rgb '%s' linewidth %d dashtype %d", colour(line), thickness(line), dash(line))
points(p, line, size) = data(p, line) . sprintf(" notitle with points linecolor rgb '%s' pointtype %d pointsize %g", \
                                                colour(line), mark(line), size)
unset key
set datafile missing NaN # lines go on over the rows of other lines
set logscale x 2
set xrange [shortest * 0.97:longest * 1.03]
set yrange [0:top]
set ytics step
set xtics ()
do for [doubling = 0:40] {
  if (2 ** doubling >= shortest && 2 ** doubling <= longest) { set xtics add (size(2 ** doubling) 2 ** doubling) }
}

eval terminal(900, height)
set output path(ARG2 . ".svg")
set multiplot
do for [p = 1:4] {
  beside = (p + 1) % 2; below = p > 2
  set lmargin at screen beside ? 0.535 : 0.075
  set rmargin at screen beside ? 0.885 : 0.425
  head_end = 193 + (below ? panel_height + 84 : 0)
  set tmargin at screen from_top(head_end)
  set bmargin at screen from_top(head_end + panel_height)
  set format y beside ? "" : "%g"
  if (p == 1) { eval head }
  set title "{/:Bold " . panel_title[p] . "}" offset 0, -0.4 font ",15" textcolor rgb ink
  set xlabel (below ? "sequence length" : "")
  set label 6 (beside ? "" : "TFLOPS") at graph 0.02, graph 1.08 right font ",14" textcolor rgb grey
  curves = ""
  labels = sum [line = 1:lines] (end[place(p, line)] > 0)
  do for [line = 1:lines] {
    if (end[place(p, line)] > 0) {
      level[1 + lower(p, line)] = end[place(p, line)]
      order[1 + lower(p, line)] = line
      curves = curves . curve(p, line) . (stands_out(line) ? points(p, line, dot) : "")
    }
  }
  do for [round = 1:labels * labels] {
    if (labels > 0 && level[1] < 0.02 * top) { level[1] = 0.02 * top }
    do for [i = 2:labels] {
      lack = gap - level[i] + level[i - 1]
      if (lack > 0) {
        level[i] = level[i] + lack / 2
        level[i - 1] = level[i - 1] - lack / 2
      }
    }
  }
  do for [i = 1:labels] {
    line = order[i]
    set label 100 + i short(names[line]) at graph 1.06, first level[i] font ",14" textcolor rgb label_colour(line)
    set arrow 100 + i from longest, end[place(p, line)] to graph 1.05, first level[i] nohead \
      linecolor rgb colour(line) linewidth 1
  }
  eval "plot NaN notitle" . curves
  unset label
  unset arrow
}
unset multiplot
unset output
