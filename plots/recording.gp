# What the plots of recordings share: the check of a file and what its rows say. Loaded with
#
#   call "recording.gp" SCRIPT FILE COLUMNS COMMAND
#
# SCRIPT is the plot's name in messages, COMMAND what records such a file. Exits 1 with one line when FILE is missing or
# has no rows, when its header lacks one of COLUMNS, names parted by spaces, or when a row is not as long as the header.
# A file as gnuplot opens it: a name that begins with < or | alone would be a command, one with - or $ something else.
path(name) = name[1:1] eq "/" ? name : "./" . name
# The same for a shell to read from: in single quotes, each quote in the name as '\''.
escaped(name) = (quote = strstrt(name, "'"), \
                 quote ? name[:quote - 1] . "'\\''" . escaped(name[quote + 1:]) : name)
shell(name) = " <'" . escaped(path(name)) . "'"
no_data = sprintf("%s: no recorded data in %s; %s records it", ARG1, ARG2, ARG4)
header = system("head -n 1 2>&-" . shell(ARG2) . " | tr -d '\\r'")
if (header eq "") {
  print no_data
  exit status 1
}
do for [name in ARG3] {
  if (!strstrt("," . header . ",", "," . name . ",")) {
    print sprintf("%s: %s has no column %s; its first line must name %s", ARG1, ARG2, name, ARG3)
    exit status 1
  }
}
if (system("sed -n 2p" . shell(ARG2)) eq "") {
  print no_data
  exit status 1
}
broken = system("awk -F, 'NR == 1 { n = NF } NF != n { print NR \": \" NF \" fields, its header has \" n; exit }'" \
                . shell(ARG2))
if (broken ne "") {
  print sprintf("%s: %s, line %s", ARG1, ARG2, broken)
  exit status 1
}
set datafile separator ","

# Stages begin with their number, "02-online-softmax" or "02b-wmma-pv"; what else was timed beside them is a peer,
# "cuDNN".
is_stage(name) = strstrt("0123456789", name[1:1]) > 0
# A picture is of one pass: of the backward pass where all stages of the file are of it, 12, 12b and so on; else of the
# forward pass, and those stages are in none of its pictures.
is_backward(name) = name[1:2] eq "12"
pass = system("awk -F, '/^12/ { backward = 1 } /^[0-9]/ && !/^12/ { forward = 1 } " . \
              "END { print backward && !forward ? \"backward\" : \"forward\" }'" . shell(ARG2))
is_of_pass(name) = !is_stage(name) || is_backward(name) == (pass eq "backward")
number_of(name) = name[:strstrt(name, "-") - 1]
title_of(name) = name[strstrt(name, "-") + 1:]
# A name that fits beside a line.
short(name) = is_stage(name) ? number_of(name) : name[1:15] eq "FlashAttention-" ? "FA" . name[16:20] : \
              name[1:8] eq "PyTorch " ? name[9:] : name[1:8]
full(name) = is_stage(name) ? number_of(name) . " " . title_of(name) : name
# Of how many runs the file's times are medians: "median of 20 runs", or "medians of 3-15 runs".
runs = system("awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == \"repeats\") c = i; next } " . \
              "c { if (!least || $c < least) least = $c + 0; if ($c > most) most = $c + 0 } " . \
              "END { print least == most ? \"median of \" most : \"medians of \" least \"-\" most, \"runs\" }'" \
              . shell(ARG2))
# The SM clock: that which ran in the rows looked at so far, where the file has it, else the highest. The arguments of
# these are not looked at: they are about the current row.
has_clock = strstrt("," . header . ",", ",clock_mhz,") > 0
clock_low = 1e30; clock_high = 0
clock_of(row) = has_clock ? column("clock_mhz") : NaN
see_clock(mhz) = (clock_low = mhz < clock_low ? mhz : clock_low, clock_high = mhz > clock_high ? mhz : clock_high, mhz)
clock_range(highest) = clock_high == 0 ? "most " . highest : \
  clock_low == clock_high ? sprintf("%.0f", clock_low) : sprintf("%.0f-%.0f", clock_low, clock_high)
# On what the rows up to the current one were recorded, and how.
where(row) = (see_clock(clock_of(0)), \
              sprintf("SM at %s MHz, driver %s, CUDA %s, %s, %s", clock_range(strcol("sm_clock_mhz")), \
                      strcol("driver"), strcol("cuda"), substr(strcol("date"), 1, 10), runs))
# A name with its short one: "FlashAttention-2 (FA2)".
meaning(name) = strstrt(name, short(name)) || strstrt(name, " deterministic") ? name : name . " (" . short(name) . ")"
# A picture of four panels: that of the current row, and what it is called.
panel(head_dim) = (head_dim == 128 ? 3 : 1) + column("causal")
array panel_title[4] = ["head dim 64, no mask", "head dim 64, causal mask", \
                        "head dim 128, no mask", "head dim 128, causal mask"]
