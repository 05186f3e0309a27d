# Draws how fast decode reads the cache, against the number of keys: four panels, one for each batch.
#
#   gnuplot -c plots/decode.gp DATA.csv OUTPUT
#
# writes OUTPUT.svg. DATA.csv is what peers.py --pass=decode writes; of it the rows with 32 and 8 heads, head dimension
# 128, one query, a bf16 cache without pages and full sequences are drawn. Two stages stand out, the other ones are grey,
# peers are dashed, and the thick grey line is what a kernel reaches that only reads. Exits 1 with one line when there is
# nothing to draw.
if (ARGC != 2) {
  print "decode.gp: usage: gnuplot -c plots/decode.gp DATA.csv OUTPUT"
  exit status 2
}
folder = ARG0[:strlen(ARG0) - strlen("decode.gp")]
load folder . "style.gp"
call folder . "recording.gp" "decode.gp" ARG1 \
  "stage device sm_clock_mhz driver cuda date batch heads kv_heads keys head_dim queries page lengths cache gb_per_s read_gb_per_s repeats" \
  "on a Hopper GPU, make peers OPTIONS=--pass=decode"

# ---- $points: panel (1 to 4), line, keys and GB/s of each row; line 1 is what reading alone reaches ----

array batches[4] = [1, 4, 32, 128]
panel_of(batch) = sum [i = 1:4] (batches[i] == batch ? i : 0)
# With one query 13f does what 13d does.
is_wanted(row) = panel_of(column("batch")) > 0 && column("heads") == 32 && column("kv_heads") == 8 && \
  column("head_dim") == 128 && column("queries") == 1 && column("page") == 0 && strcol("lengths") eq "full" && \
  strcol("cache") eq "bf16" && strcol("stage")[:3] ne "13f" && column("gb_per_s") > 0
array names[32]
names[1] = "reading alone"
lines = 1
number(name) = (found = sum [i = 2:lines] (names[i] eq name ? i : 0), \
                found ? found : (lines = lines + 1, names[lines] = name, lines))
array end_keys[4 * 32]
array end[4 * 32]
do for [i = 1:4 * 32] { end_keys[i] = 0; end[i] = 0 }
place(panel, line) = 4 * (line - 1) + panel
shortest = 1e30; longest = 0; highest = 0
note(place, s, t) = (shortest = s < shortest ? s : shortest, longest = s > longest ? s : longest, \
                     highest = t > highest ? t : highest, s >= end_keys[place] ? (end_keys[place] = s, end[place] = t) : 0, t)
describe(row) = (device = strcol("device"), recorded = where(0), 0)
set table $points separator comma
plot path(ARG1) using (ok = is_wanted(0), ok ? describe(0) : 0, p = panel_of(column("batch"))): \
  (ok ? (l = number(strcol("stage"))) : 0):(s = column("keys")):(ok ? note(place(p, l), s, column("gb_per_s")) : 0) \
  with table if (ok), \
  path(ARG1) using (ok = is_wanted(0), p = panel_of(column("batch"))):(1):(s = column("keys")): \
  (ok ? note(place(p, 1), s, column("read_gb_per_s")) : 0) with table if (ok)
unset table
if (lines == 1) {
  print sprintf("decode.gp: %s has no row with heads 32 and 8, head dim 128, one query and a plain bf16 cache", ARG1)
  exit status 1
}

# ---- how each line looks ----

is_new(line) = names[line][:3] eq "13d"
is_cluster(line) = names[line][:3] eq "13c"
is_peer(line) = line > 1 && !is_stage(names[line])
peers_before(line) = sum [i = 2:line] is_peer(i)
colour(line) = line == 1 ? light : is_new(line) ? blue : is_cluster(line) ? orange : is_peer(line) ? green : faint
thickness(line) = line == 1 ? 6 : is_new(line) || is_cluster(line) ? 3 : is_peer(line) ? 2 : 1
dash(line) = is_peer(line) ? 1 + peers_before(line) : 1
label_colour(line) = line == 1 || colour(line) eq faint ? grey : colour(line)
label_of(line) = line == 1 ? "read" : short(names[line])

panel_height = lines > 11 ? 28 * lines : 308
height = 349 + 2 * panel_height
from_top(pixels) = 1 - pixels / real(height)
stages = ""; dashed = ""
do for [line = 2:lines] {
  if (is_peer(line)) { dashed = dashed . (dashed eq "" ? "dashed: " : ", ") . meaning(names[line]) }
  if (is_new(line) || is_cluster(line)) { stages = stages . (stages eq "" ? "" : ", ") . full(names[line]) }
}
head = 'set label 1 "{/:Bold Decode: keys and values read a second, on one " . device . "}" at screen 0.03, \
    screen from_top(26) font ",19" textcolor rgb ink; \
  set label 2 "32 heads of queries, 8 of keys, head dim 128, bf16, one query a sequence" \
    at screen 0.03, screen from_top(52) font ",14" textcolor rgb grey; \
  set label 3 recorded at screen 0.03, screen from_top(74) font ",14" textcolor rgb grey; \
  set label 4 "{/:Bold " . stages . "}" at screen 0.03, screen from_top(108) font ",14" textcolor rgb ink; \
  set label 7 "thin grey: other stages; thick grey: a kernel that only reads" \
    at screen (27 + 12 * strlen(stages)) / 900.0, screen from_top(108) font ",14" textcolor rgb grey; \
  set label 5 dashed at screen 0.03, screen from_top(132) font ",14" textcolor rgb green'

# ---- one panel ----

top = ceil(highest * 1.02 / 500) * 500
size(keys) = keys < 1024 || keys % 1024 ? sprintf("%d", keys) : sprintf("%dk", keys / 1024)
array order[32]
array level[32]
gap = 0.075 * 308 / panel_height * top
lower(p, line) = sum [other = 1:lines] (end[place(p, other)] > 0 && (end[place(p, other)] < end[place(p, line)] || \
                                        (end[place(p, other)] == end[place(p, line)] && other < line)))
curve(p, line) = sprintf(", $points using ($1 == %d && $2 == %d ? $3 : NaN):4 smooth unique notitle with linespoints", \
                         p, line) . sprintf(" linecolor rgb '%s' linewidth %d dashtype %d pointtype 7 pointsize %g", \
                         colour(line), thickness(line), dash(line), thickness(line) == 3 ? dot : 0.01)
unset key
set datafile missing NaN
set logscale x 2
set xrange [shortest * 0.97:longest * 1.03]
set yrange [0:top]
step = top > 4000 ? 1000 : 500
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
  set title sprintf("{/:Bold batch %d}", batches[p]) offset 0, -0.4 font ",15" textcolor rgb ink
  set xlabel (below ? "keys" : "")
  set label 6 (beside ? "" : "GB/s") at graph 0.02, graph 1.08 right font ",14" textcolor rgb grey
  curves = ""
  labels = sum [line = 1:lines] (end[place(p, line)] > 0)
  do for [line = 1:lines] {
    if (end[place(p, line)] > 0) {
      level[1 + lower(p, line)] = end[place(p, line)]
      order[1 + lower(p, line)] = line
      curves = curves . curve(p, line)
    }
  }
  do for [round = 1:labels * labels] {
    if (labels > 0 && level[1] < 0.02 * top) { level[1] = 0.02 * top }
    if (labels > 0 && level[labels] > top) { level[labels] = top }
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
    set label 100 + i label_of(line) at graph 1.06, first level[i] font ",14" textcolor rgb label_colour(line)
    set arrow 100 + i from end_keys[place(p, line)], end[place(p, line)] to graph 1.05, first level[i] nohead \
      linecolor rgb colour(line) linewidth 1
  }
  eval "plot NaN notitle" . curves
  unset label
  unset arrow
}
unset multiplot
unset output
