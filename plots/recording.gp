# What the plots of recordings share: the check of a file and what its rows say. Loaded with
#
#   call "recording.gp" SCRIPT FILE COLUMNS COMMAND
#
# SCRIPT is the plot's name in messages, COMMAND what records such a file. Exits 1 with one line when FILE is missing or
# has no rows, when its header lacks one of COLUMNS, names parted by spaces, or when a row is not as long as the header.
no_data = sprintf("%s: no recorded data in %s; %s records it", ARG1, ARG2, ARG4)
header = system(sprintf("head -n 1 '%s' 2>&- | tr -d '\\r'", ARG2))
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
if (system(sprintf("sed -n 2p '%s'", ARG2)) eq "") {
  print no_data
  exit status 1
}
broken = system("awk -F, 'NR == 1 { n = NF } NF != n { print NR \": \" NF \" fields, its header has \" n; exit }' '" \
                . ARG2 . "'")
if (broken ne "") {
  print sprintf("%s: %s, line %s", ARG1, ARG2, broken)
  exit status 1
}
set datafile separator ","

# Stages begin with their number, "02-online-softmax" or "02b-wmma-pv"; what else was timed beside them is a peer, "cuDNN".
is_stage(name) = strstrt("0123456789", name[1:1]) > 0
number_of(name) = name[:strstrt(name, "-") - 1]
title_of(name) = name[strstrt(name, "-") + 1:]
# A name that fits beside a line.
short(name) = is_stage(name) ? number_of(name) : name[1:15] eq "FlashAttention-" ? "FA" . name[16:] : \
              name[1:8] eq "PyTorch " ? name[9:] : name[1:8]
full(name) = is_stage(name) ? number_of(name) . " " . title_of(name) : name
# Of how many runs the file's times are medians: "median of 20 runs", or "medians of 3-15 runs".
runs = system("awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == \"repeats\") c = i; next } " . \
              "c { if (!least || $c < least) least = $c + 0; if ($c > most) most = $c + 0 } " . \
              "END { print least == most ? \"median of \" most : \"medians of \" least \"-\" most, \"runs\" }' '" \
              . ARG2 . "'")
# On what the current row was recorded, and how; the argument is not looked at.
where(row) = sprintf("SM clock %s MHz, driver %s, CUDA %s, %s, %s", strcol("sm_clock_mhz"), strcol("driver"), \
                     strcol("cuda"), substr(strcol("date"), 1, 10), runs)
# A name with its short one: "FlashAttention-2 (FA2)".
meaning(name) = strstrt(name, short(name)) ? name : name . " (" . short(name) . ")"
# A picture of four panels: that of the current row, and what it is called.
panel(head_dim) = (head_dim == 128 ? 3 : 1) + column("causal")
array panel_title[4] = ["head dim 64, no mask", "head dim 64, causal mask", \
                        "head dim 128, no mask", "head dim 128, causal mask"]
