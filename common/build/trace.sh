#!/bin/sh
# Draws who does what when inside a stage's kernel, from time stamps on a GPU:
#
#   trace.sh ./stage-NN build/trace/trace-NN "OPTIONS"
#
# The traced program writes plots/data/trace/stage-NN.csv, gnuplot makes plots/trace-NN.svg and .png of it. OPTIONS are
# the stages' own; the default problem has sixteen or fewer tiles a block, which one can still tell apart. Time stamps
# cost time: the kernel with them is compared with the one without.
stage=$1 traced=$2
number=${stage##*-}
csv=plots/data/trace/stage-$number.csv
options="--device=gpu --batch=4 --heads=32 --seqlen=1024 $3"

fail() { echo "trace-$number: $*" >&2; exit 1; }

grep -q trace_begin stages/"$number"-*/kernel.cu ||
  fail "stage $number has no time stamps; these have:" $(grep -l trace_begin stages/*/kernel.cu | cut -d/ -f2)
mkdir -p plots/data/trace
# shellcheck disable=SC2086
"$traced" $options --trace="$csv"
code=$?
[ $code = 3 ] && fail "only a GPU can be traced: the emulator has no clock"
[ $code = 0 ] || exit $code

# A CSV row's twelfth column is the median time in ms.
median() { "$1" $options --csv=- 2>/dev/null | sed -n 2p | cut -d, -f12; }
awk -v with="$(median "$traced")" -v without="$(median "$stage")" 'BEGIN {
  printf "time      %s ms, and %s ms without the time stamps: they cost %.1f %%\n", with, without, 100 * (with / without - 1) }'

if command -v gnuplot >/dev/null; then
  gnuplot -c plots/timeline.gp "$csv" "plots/trace-$number" && echo "picture   plots/trace-$number.svg and .png"
else
  echo "picture   none: there is no gnuplot here; \`make plot\` draws $csv where there is one"
fi
