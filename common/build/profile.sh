#!/bin/sh
# Asks Nsight Compute what a stage's kernels did on the GPU, the dozen things that matter (metrics.txt):
#
#   profile.sh CUDA ./stage-NN "NOTE" "OPTIONS"
#
# Prints a table for both head dimensions, and records every number in plots/data/ncu/stage-NN.csv, together with those
# of the small problem that is the emulator's default, whose counts can be compared. NOTE says what was changed in the
# kernel, "without the swizzle", and becomes part of the program's and the file's name. OPTIONS are the stage's own, for
# the table's problem. The GPU's clocks are left as they are.
here=$(dirname "$0")
. "$here/need.sh"
cuda=$1 stage=$2 note=$3 options=$4
need_gpu "$stage"
need_tool ncu "$cuda"
need_writable plots/data/ncu
fail() { echo "profile: $*" >&2; exit 1; }
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

# Nsight Compute refuses a list with a metric that it does not know. What it lists are names without ".sum" and the
# like, and not the launch__ ones.
{ ncu --query-metrics --chips gh100 || ncu --query-metrics; } 2>/dev/null | awk '{ print $1 }' | sort -u >"$work/known"
[ -s "$work/known" ] || fail "ncu --query-metrics lists none"
metrics=$(awk -F ' *[|] *' 'FNR == NR { known[$1]; next }
  /^#/ { next }
  { base = $1; sub(/[.].*/, "", base) }
  base in known || /^launch__/ { print $1 }' "$work/known" "$here/metrics.txt" | paste -sd, -)

told=
# profile NAME OPTIONS...: NAME.raw gets what Nsight Compute prints of the first launch of each kernel, NAME.report what
# the stage prints.
profile() {
  name=$work/$1
  told="$told $name.report $name.raw"
  shift
  echo "profile: $stage $*" >&2
  ncu --clock-control none --csv --page raw --print-units base --kernel-name-base function --kernel-id :::1 \
    --metrics "$metrics" --log-file "$name.raw" "$stage" --device=gpu --repeat=0 "$@" >"$name.report" 2>&1
  code=$?
  grep -qs ERR_NVGPUCTRPERM "$name.raw" "$name.report" &&
    fail "the driver lets only root read the GPU's counters (ERR_NVGPUCTRPERM)"
  [ $code = 0 ] && grep -qs '^"' "$name.raw" ||
    { cat "$name.report" "$name.raw" 2>/dev/null | tail -n 10 >&2; fail "ncu failed (above)"; }
}
if is_attention "$stage"; then
  for head_dim in 64 128; do
    profile small-$head_dim --batch=1 --heads=2 --seqlen=128 --head-dim=$head_dim
    # shellcheck disable=SC2086
    profile table-$head_dim --batch=1 --heads=$((2048 / head_dim)) --seqlen=4096 --head-dim=$head_dim $options
  done
else
  # shellcheck disable=SC2086
  profile table $options
fi

program=$(basename "$stage")${note:+ $note}
csv=plots/data/ncu/$(echo "$program" | tr ' ' -).csv
version=$(ncu --version | sed -n 's/^Version \([0-9.]*\).*/\1/p')
# shellcheck disable=SC2086
awk -v program="$program" -v ncu="$version" -v date="$(date -u +%Y-%m-%d)" -v csv="$work/csv" -f "$here/profile.awk" \
  "$here/metrics.txt" $told || exit 1
cp "$work/csv" "$csv"
echo "recorded in $csv"
