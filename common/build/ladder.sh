#!/bin/sh
# Runs every stage, on the GPU or the emulator, and prints one table:
#
#   ladder.sh "OPTIONS" ./stage-00 ./stage-01 ...
#
# OPTIONS are the stages' own, "--seqlen=1024 --causal"; each stage gets those that it has. On a GPU the table has times,
# each stage's speedup over the one before that does the same pass, forward or backward, and what was recorded on an H200;
# the rows go to build/ladder.csv, and gnuplot draws those of the forward pass. The emulator has no clock: there the table
# has what the kernels did, and beside it the TFLOPS that were recorded on an H200, always of the same large problem.
# Exits with the worst exit code.
. "$(dirname "$0")/progress.sh"
. "$(dirname "$0")/need.sh"
export LC_ALL=C # a point is a point
options=$1
shift
rows=build/ladder.csv
need_writable build
: >$rows && report=$(mktemp) || exit 1
trap 'rm -f "$report"' EXIT
trap 'exit 130' INT TERM

# The report's line that begins with a word, without that word.
line() { sed -n "s/^$1  *//p" "$report"; }

# The options for a stage. One that is not an attention kernel, or has no e4m3 inputs, refuses those that are for these.
options_of() {
  for option in $options; do
    case $("$1" "$option" --help 2>&1) in *'does not have this option'*) ;; *) echo "$option" ;; esac
  done
}

# A row from its columns; what is not known is a dash. Before the first row: what runs where, and the table's head.
row() {
  progress ''
  if [ "$head" ]; then
    line device
    line problem
    echo
    # shellcheck disable=SC2059
    printf "$format" $head
    head=
  fi
  # shellcheck disable=SC2059
  printf "$format" "${1:--}" "${2:--}" "${3:--}" "${4:--}" "${5:--}" "${6:--}" "${7:-}"
}

# The largest number in the CSV's column $1; nothing when there is no such column.
largest() {
  echo "$csv" | awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) column = i }
    NR > 1 && column && $column > most { most = $column } END { print most }'
}

# On a GPU a stage writes a row of CSV. One that is not an attention kernel has columns of its own, or none: of its TFLOPS
# the table shows the largest, and the speedups go on from the stage below it.
gpu_row() {
  format='%-25s %6s %11s %8s %8s %15s%s\n'
  head=${head:+stage result time/ms TFLOPS speedup recorded-TFLOPS}
  case $csv in *,batch,heads,seqlen,*) ms=$(largest median_ms) ;; *) ms= ;; esac
  tflops=$(largest tflops)
  case $(line problem) in *'; backward') pass=backward ;; *) pass=forward ;; esac
  [ -z "$ms" ] || [ $pass = "$pass_before" ] || before=
  speedup=$([ "$ms" ] && [ "$before" ] && awk "BEGIN { printf \"%.2fx\", $before / $ms }")
  row "$name" "$result" "${ms:+$(printf %.4f "$ms")}" "${tflops:+$(printf %.1f "$tflops")}" "$speedup" "$(line compared | sed 's/.*recorded: //; s/ .*//')"
  [ "$ms" ] || [ $code = 1 ] || alone="$alone $stage"
  [ "$ms" ] || return
  before=$ms pass_before=$pass
  [ -s $rows ] && csv=$(echo "$csv" | sed 1d)
  echo "$csv" >>$rows
}

# The bytes of global memory that loads, stores and bulk copies moved: "1.23 MB".
traffic() {
  grep 'global memory' "$report" | tr ';' '\n' | sed -n 's/.*[0-9] [a-z]* of [0-9.]* sectors, \([0-9,]*\) bytes.*/\1/p
    s/.*bulk copies [a-z]* \([0-9,]*\) bytes of global memory.*/\1/p' | tr -d , |
    awk '{ sum += $1 } END { if (!NR) exit; n = split("B kB MB GB TB", unit)
      for (i = 1; i < n && sum >= 999.5; i++) sum /= 1000
      printf "%.3g %s", sum, unit[i] }'
}

# The TFLOPS of a stage that were recorded on an H200 with S = 4096, D = 128 and no mask, as a whole number; nothing when
# nobody recorded it. The columns are csv.c's. Other recordings have a row of stage 10, too: the first one counts.
recorded() {
  awk -F, -v stage="$1" '$1 == stage && $9 == 4096 && $10 == 128 && $11 == 0 && $17 != "sustained" {
    printf "%.0f", $16; exit }' plots/data/nvidia-h200.csv $(ls plots/data/nvidia-h200-e4m3.csv \
    plots/data/nvidia-h200-backward.csv 2>/dev/null)
}

# The emulator's counters: warp instructions, bytes of global memory, bank conflicts. And what was recorded.
emulator_row() {
  format='%-25s %6s %7s %12s %7s %9s %7s\n'
  head=${head:+stage result hazards instructions traffic conflicts TFLOPS*}
  tflops=$(recorded "$name")
  row "$name" "$result" "$(line hazards | sed 's/^not looked.*/off/; s/ .*//')" "$(line counters | cut -d' ' -f1)" \
    "$(traffic)" "$(sed -n '/shared memory:/ { s/[^0-9 ]//g; p; }' "$report" | awk '{ print $2 + $4 }')" "${tflops:--}"
}

# The picture of the problem that the first row names.
draw() {
  if ! command -v gnuplot >/dev/null; then
    echo "no picture without gnuplot (make gnuplot installs it); the times are in $rows"
    return
  fi
  # shellcheck disable=SC2046
  gnuplot -c plots/ladder.gp $rows build/ladder $(sed -n 2p $rows | cut -d, -f7-11 | tr , ' ') &&
    echo "picture: build/ladder.svg; times: $rows"
}

head=due
alone= before= pass_before=
worst=0
number=0
for stage in "$@"; do
  number=$((number + 1))
  given=$(options_of "$stage")
  progress "[$number/$#] $stage"
  # With no GPU --csv is refused, exit code 2, as it is beside an option that only the emulator knows: then without it.
  csv=$("$stage" $given --csv=- 2>"$report")
  code=$?
  [ $code = 2 ] && csv= && { "$stage" $given >"$report" 2>&1; code=$?; }
  name=$(line stage | cut -d: -f1)
  result=$(line result | cut -d' ' -f1 | tr -d :)
  if [ $code -gt 1 ] || [ -z "$result" ]; then
    progress ''
    echo "$stage: not run (exit code $code): $(tail -n 1 "$report")"
  elif line device | grep -q emulator; then
    emulator_row
  else
    gpu_row
  fi
  [ $code = 1 ] && echo "  $stage" $given "says what is wrong"
  [ $code -gt $worst ] && worst=$code
done

echo
[ -z "$alone" ] || echo "not an attention kernel, the TFLOPS are its best:$alone"
if [ -s $rows ]; then
  draw
else
  echo "* Only a GPU can time a kernel. These were recorded on an NVIDIA H200"
  echo "(plots/data/), and of a large problem: S = 4096, D = 128, no mask. The other"
  echo "columns are of the problem above. In a small one, large tiles may cost"
  echo "instructions. plots/nvidia-h200-ladder.svg shows more of the record."
fi
exit $worst
