#!/bin/sh
# Records a timeline of a stage's kernel, from time stamps on a GPU:
#
#   trace.sh ./stage-NN build/trace/trace-NN "OPTIONS"
#
# The time stamps go to plots/data/trace/stage-NN.csv.gz; zcat shows them. OPTIONS are the stages' own; the default
# problem has so few tiles a block that one can tell them apart. Time stamps cost time: the kernel with them is compared
# with the one without.
. "$(dirname "$0")/need.sh"
export LC_ALL=C # 02 comes before 02b, and a point is a point
stage=$1 traced=$2
number=${stage##*-}
csv=plots/data/trace/stage-$number.csv
options="--device=gpu --batch=4 --heads=32 --seqlen=1024 $3"

fail() { echo "trace-$number: $*" >&2; exit 1; }

# Whether a stage's kernel, or a header that stages have for it, has time stamps.
has_stamps() { awk -f common/build/device_lines.awk "$1"/kernel.cu | grep -q trace_begin; }
with_stamps() { for folder in stages/*; do ! has_stamps "$folder" || echo "${folder#*/}"; done | xargs; }
has_stamps stages/"$number"-* || fail "stage $number has no time stamps; these have: $(with_stamps)"
need_gpu "$stage"
need_writable plots/data/trace
# shellcheck disable=SC2086
"$traced" $options --trace="$csv" || exit 1
gzip -9nf "$csv" && echo "          zcat $csv.gz shows them"

# A CSV row's twelfth column is the median time in ms.
# shellcheck disable=SC2086
median() { "$1" $options --csv=- 2>/dev/null | sed -n 2p | cut -d, -f12; }
awk -v with="$(median "$traced")" -v without="$(median "$stage")" 'BEGIN {
  printf "time      %s ms, and %s ms without the time stamps, ", with, without
  printf "which cost %.1f %%\n", 100 * (with / without - 1)
}'
