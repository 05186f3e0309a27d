# Draws a timeline of a kernel: a lane for each warpgroup of one SM, a coloured bar for each phase.
#
#   gnuplot -c plots/timeline.gp DATA.csv OUTPUT [START_NS END_NS [DATA.csv...]]
#
# writes OUTPUT.svg. DATA.csv is what `make trace-NN` writes: one row for each phase of each warpgroup,
# with the columns
#
#   stage,device,date,block,warpgroup,role,phase,start_ns,end_ns,tile
#
# Time is counted from the start of the first store: before it the steps of a tile are in full swing, after it comes the
# end of the tile and what follows. START_NS and END_NS are the window, -5000 and 3000 when they are not given. Without
# a store time is counted from 0.
#
# Waits are low bars, work is high ones. Phases whose name ends in " in flight" go on in the background, until the
# kernel has noticed that they are done, and are thin bars below their lane (copies) or above it (products). Stages of
# further files, five at most (gnuplot hands on nine arguments), stand below the first, each counted from its own first
# store.
# Exits 1 with one line when there is nothing to draw, or more than a picture holds.
if (ARGC < 2 || ARGC == 3) {
  print "timeline.gp: usage: gnuplot -c plots/timeline.gp DATA.csv OUTPUT [START_NS END_NS [DATA.csv...]]"
  exit status 2
}
folder = ARG0[:strlen(ARG0) - strlen("timeline.gp")]
load folder . "style.gp"
files = ARGC < 4 ? 1 : ARGC - 3
array file[files]
do for [f = 1:files] {
  file[f] = f == 1 ? ARG1 : ARGV[f + 3]
  call folder . "recording.gp" "timeline.gp" file[f] \
    "stage device date block warpgroup role phase start_ns end_ns tile" "on a Hopper GPU, make trace-NN"
}

# ---- the window ----

array store[files]
last = 0; phases = 0
describe(row) = (stage = strcol("stage"), device = strcol("device"), date = strcol("date"), 0)
first_of(known, start) = known == 0 || start < known ? start : known
seen(f, start, end) = (last = end > last ? end : last, phases = phases + 1, phases == 1 ? describe(0) : 0, \
                       strcol("phase") eq "store" ? (store[f] = first_of(store[f], start)) : 0, start)
is_phase(start, end) = start >= 0 && end >= start
set table $phases
do for [f = files:1:-1] {
  store[f] = 0.0; last = 0; phases = 0
  plot path(file[f]) using (ok = is_phase(column("start_ns"), column("end_ns")), \
                            ok ? seen(f, column("start_ns"), column("end_ns")) : 0) with table if (ok)
}
unset table
# Of the first file: where it begins and ends.
begin = 0 - store[1]
last = last - store[1]
least(a, b) = a < b ? a : b
from = ARGC >= 4 ? real(ARG3) : store[1] > 5000 ? -5000.0 : begin
to = ARGC >= 4 ? real(ARG4) : least(from + 8000, last)

# ---- $bars: lane, phase, start, end and tile of each phase in the window ----

array lanes[128]
array lane_y[128]
array phase[64]
array stages[files]
array stage_y[files]
lane_count = 0; phase_count = 0; too_many = 0
# The number of a name in its list; one that is new is put at the end, if there is room. Lanes are the file's at hand.
lane_number(name) = (found = sum [i = first_lane:lane_count] (lanes[i] eq name ? i : 0), \
                     found ? found : lane_count == |lanes| ? (too_many = 1, 0) : \
                     (lane_count = lane_count + 1, lanes[lane_count] = name, lane_count))
phase_number(name) = (found = sum [i = 1:phase_count] (phase[i] eq name ? i : 0), \
                      found ? found : phase_count == |phase| ? (too_many = 1, 0) : \
                      (phase_count = phase_count + 1, phase[phase_count] = name, phase_count))
lane_name(block) = "block " . block . ", warpgroup " . strcol("warpgroup") . "|" . strcol("role")
set table $bars separator comma
do for [f = 1:files] {
  bars = 0
  first_lane = lane_count + 1
  plot path(file[f]) using \
    (start = column("start_ns") - store[f], end = column("end_ns") - store[f], \
     ok = is_phase(column("start_ns"), column("end_ns")) && start < to && end > from, bars = bars + ok, \
     ok ? (stages[f] = strcol("stage"), lane_number(lane_name(strcol("block")))) : 0): \
    (ok ? phase_number(strcol("phase")) : 0):(start):(end):"tile" with table if (ok)
  if (bars == 0) {
    print sprintf("timeline.gp: %s has no phase between %g and %g ns", file[f], from, to)
    exit status 1
  }
  if (too_many) {
    print sprintf("timeline.gp: %s has too much between %g and %g ns; room is for %d warpgroups and %d phases", \
                  file[f], from, to, |lanes|, |phase|)
    exit status 1
  }
  # The first lane is on top; of several stages each has a heading of half a lane.
  do for [lane = first_lane:lane_count] { lane_y[lane] = -lane - 0.5 * f * (files > 1) }
  stage_y[f] = -first_lane - 0.5 * f + 0.75
}
unset table

# ---- colours and places ----

ends_in(name, end) = strlen(name) >= strlen(end) && name[strlen(name) - strlen(end) + 1:] eq end
is_wait(p) = ends_in(phase[p], "wait")
in_flight(p) = ends_in(phase[p], " in flight")
work(p) = in_flight(p) ? phase[p][:strlen(phase[p]) - strlen(" in flight")] : phase[p]
# A wait has a hue of its own; those that are also a phase's say what is waited for.
rgb_number(name) = int(real("0x" . name[2:]))
colour_of(name) = name eq "load wait" ? green : name eq "wgmma wait" ? blue : name eq "turn wait" ? ink : \
                  name eq "free wait" ? yellow : ends_in(name, "wait") ? faint : \
                  name eq "QK" ? blue : name eq "PV" ? sky : name eq "softmax" ? orange : \
                  name eq "rescale" ? amber : name eq "copy" ? green : name eq "store" ? purple : yellow
colour(p) = rgb_number(colour_of(work(p)))
is_dark(p) = strstrt(blue . orange . green . ink, colour_of(work(p))) > 0
array colours[64]
array inks[64]
do for [p = 1:phase_count] { colours[p] = colour(p); inks[p] = is_dark(p) ? 0xffffff : 0x222222 }

# A lane is one unit high. Waits stand on the same ground as work. What is in flight takes turns between two thin bars.
is_copy(p) = work(p) eq "copy"
level(lane, p, tile) = lane_y[lane] + \
  (is_wait(p) ? half_height(p) - 0.26 : in_flight(p) ? (is_copy(p) ? -1 : 1) * (0.32 + 0.1 * (int(tile) % 2)) : 0)
half_height(p) = in_flight(p) ? 0.04 : is_wait(p) ? 0.13 : 0.26
centre(start, end) = (clipped(start) + clipped(end)) / 2
clipped(t) = t < from ? from : t > to ? to : t

# ---- the picture ----

width = 1000
left_edge = 160.0
right_edge = 965.0
# The key has each colour once, in the order of appearance, in as many rows as it needs; text has no width before it is
# drawn, 11 pixels a letter is what a wide sans-serif takes.
array key_x[64]
array key_y[64]
x = 20.0
y = 92
do for [p = 1:phase_count] {
  if (!in_flight(p)) {
    key_width = 24 + 11 * strlen(phase[p]) + 18
    if (x + key_width > width) { x = 20.0; y = y + 26 }
    key_x[p] = x
    key_y[p] = y
    x = x + key_width
  }
}
flying = sum [p = 1:phase_count] in_flight(p)
waiting = sum [p = 1:phase_count] is_wait(p)
heights = (waiting ? "low: waits" : "") . (waiting && flying ? "; " : "") . \
          (flying ? "thin: in flight, until noticed" : "")
if (x + 9 * strlen(heights) > width) { x = 20.0; y = y + 26 }
head = y + 24
lane_height = files > 1 ? 58 : 78
height = head + int(lane_height * (lane_count + (files > 1 ? 0.5 * files : 0))) + 80
from_top(pixels) = 1 - pixels / real(height)
set margins screen left_edge / width, screen right_edge / width, screen 80.0 / height, screen from_top(head)
what = files > 1 ? "from stage to stage" : "stage " . full(stage)
set label 1 "{/:Bold What each warpgroup does when: " . what . " on one SM}" at screen 0.02, screen from_top(26) \
  font ",19" textcolor rgb ink
zero = store[1] > 0 ? "first store" : "start"
set label 2 sprintf("%s, %s, %s", device, date[1:10], \
                    files == 1 && from <= begin && to >= last ? "all phases" : \
                    sprintf("%.0f to %.0f ns, counted from the %s%s", from, to, files > 1 ? "stage's " : "", zero)) \
  at screen 0.02, screen from_top(54) font ",14" textcolor rgb grey
do for [p = 1:phase_count] {
  if (!in_flight(p)) {
    set object p rectangle from screen key_x[p] / width, screen from_top(key_y[p] + 8) \
      to screen (key_x[p] + 18) / width, screen from_top(key_y[p] - (is_wait(p) ? 0 : 8)) \
      fillcolor rgb colours[p] fillstyle solid noborder
    set label 10 + p phase[p] at screen (key_x[p] + 24) / width, screen from_top(key_y[p]) font ",14" textcolor rgb ink
  }
}
set label 3 heights at screen x / width, screen from_top(y) font ",14" textcolor rgb grey
do for [lane = 1:lane_count] {
  parted = strstrt(lanes[lane], "|")
  comma = strstrt(lanes[lane], ",")
  line = 17.16 / lane_height
  set label 100 + 3 * lane lanes[lane][:comma - 1] at graph 0, first lane_y[lane] + line right offset -1, 0 \
    font ",14" textcolor rgb ink
  set label 101 + 3 * lane lanes[lane][comma + 2:parted - 1] at graph 0, first lane_y[lane] right offset -1, 0 \
    font ",14" textcolor rgb ink
  set label 102 + 3 * lane lanes[lane][parted + 1:] at graph 0, first lane_y[lane] - line right offset -1, 0 \
    font ",14" textcolor rgb grey
}
if (files > 1) {
  do for [f = 1:files] {
    set label 500 + f "{/:Bold " . full(stages[f]) . "}" at graph 0, first stage_y[f] left font ",16" textcolor rgb ink
  }
}

# A name stands in its bar when there is room: 9.5 pixels a letter.
pixels(start, end) = (clipped(end) - clipped(start)) / (to - from) * (right_edge - left_edge)
fits(text, start, end) = 9.5 * strlen(text) + 9 < pixels(start, end)
inscription(p, start, end) = in_flight(p) || !fits(phase[p], start, end) ? "" : phase[p]
unset key
set border 1
unset ytics
set grid xtics noytics
set format x "%.0f"
set xlabel "ns from the " . zero
set xrange [from:to]
set yrange [lane_y[lane_count] - 0.55:lane_y[1] + 0.55 + 0.5 * (files > 1)]
set style fill solid 1 border rgb "white"
eval terminal(width, height)
set output path(ARG2 . ".svg")
plot $bars using (centre($3, $4)):(y = level($1, int($2), $5)):(clipped($3)):(clipped($4)): \
       (y - half_height(int($2))):(y + half_height(int($2))):(colours[int($2)]) notitle \
       with boxxyerror linewidth 0.5 linecolor rgb variable, \
     $bars using (centre($3, $4)):(level($1, int($2), $5)):(inscription(int($2), $3, $4)): \
       (inks[int($2)]) notitle with labels center font ",13" textcolor rgb variable
unset output
