#!/bin/sh
# Runs every stage, on the GPU or the emulator, and prints one table:
#
#   ladder.sh "OPTIONS" ./stage-00 ./stage-01 ...
#
# OPTIONS are the stages' own, "--seqlen=1024 --causal". On a GPU the table has times, and each stage's speedup over the
# one before. The emulator has no clock: there the table has what the kernels did. Exits with the worst exit code.
options=$1
shift
report=$(mktemp) || exit 1
trap 'rm -f "$report"' EXIT

# The report's line that begins with a word, without that word.
line() { sed -n "s/^$1  *//p" "$report"; }

# A row from its columns; what is not known is a dash. Before the first row: what runs where, and the table's head.
row() {
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

# On a GPU a CSV row ends in ",MEDIAN,MIN,MAX,REPEATS,TFLOPS".
gpu_row() {
  format='%-24s %7s %8s %13s %13s %13s%s\n'
  head=${head:+stage result hazards time/ms TFLOPS speedup}
  ms=$(echo "$csv" | sed -n 2p | cut -d, -f12)
  tflops=$(echo "$csv" | sed -n 2p | cut -d, -f16)
  speedup=$([ "$ms" ] && [ "$before" ] && awk "BEGIN { printf \"%.2fx\", $before / $ms }")
  row "$name" "$result" - "$ms" "$tflops" "$speedup"
  before=$ms
}

# The emulator's counters: warp instructions, the bytes that loads and stores of global memory asked for, bank conflicts.
emulator_row() {
  format='%-24s %7s %8s %13s %13s %13s %10s\n'
  head=${head:+stage result hazards instructions bytes-loaded bytes-stored conflicts}
  bytes='of [0-9.]* sectors, \([0-9,]*\) bytes.*'
  row "$name" "$result" "$(line hazards | sed 's/^not looked.*/off/; s/ .*//')" "$(line counters | cut -d' ' -f1)" \
    "$(sed -n "s/.*global memory:.* loads* $bytes/\1/p" "$report")" \
    "$(sed -n "s/.*global memory:.* stores* $bytes/\1/p" "$report")" \
    "$(sed -n '/shared memory:/ { s/[^0-9 ]//g; p; }' "$report" | awk '{ print $2 + $4 }')"
}

head=due
worst=0
for stage in "$@"; do
  # With no GPU --csv is refused, exit code 2, as it is beside an option that only the emulator knows: then without it.
  csv=$("$stage" $options --csv=- 2>"$report")
  code=$?
  [ $code = 2 ] && csv= && { "$stage" $options >"$report"; code=$?; }
  name=$(line stage | cut -d: -f1)
  result=$(line result | cut -d' ' -f1 | tr -d :)
  if [ $code -gt 1 ] || [ -z "$result" ]; then
    echo "$stage: not run (exit code $code)"
    [ "$csv" ] || cat "$report" >&2
  elif line device | grep -q emulator; then
    emulator_row
  else
    gpu_row
  fi
  [ $code = 1 ] && echo "  $stage $options  says what is wrong"
  [ $code -gt $worst ] && worst=$code
done
exit $worst
