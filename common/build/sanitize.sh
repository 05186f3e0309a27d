#!/bin/sh
# Runs stages on the GPU under compute-sanitizer's four tools, and prints a table of what they found:
#
#   sanitize.sh CUDA ./stage-00 ./stage-01 ...
#
# CUDA is the toolkit's folder. The problems are small (the tools slow a kernel down a hundredfold) and end inside a
# tile. What a tool said stays in build/sanitize/. Exits with 1 when something was found, 3 without GPU or tools.
here=$(dirname "$0")
. "$here/need.sh"
cuda=$1
shift
need_gpu "$1"
need_tool compute-sanitizer "$cuda"
logs=build/sanitize
mkdir -p $logs

# Checks of wgmma are in memcheck and synccheck alone, and not in every version.
warpgroup=
compute-sanitizer --help 2>&1 | grep -q check-warpgroup-mma && warpgroup="--check-warpgroup-mma yes"

# check TOOL LOG STAGE OPTIONS...: what is wrong: nothing; a number of errors; "failed" when the tool has not come to its
# summary, "RACECHECK SUMMARY: 2 hazards displayed (1 errors, 1 warnings)" or "ERROR SUMMARY: 2 errors".
check() {
  tool=$1 log=$2
  shift 2
  options=
  case $tool in memcheck | synccheck) options=$warpgroup ;; esac
  # shellcheck disable=SC2086
  compute-sanitizer --tool="$tool" $options --error-exitcode=86 "$@" >"$log" 2>&1
  code=$?
  found=$(sed -n 's/.*\(RACECHECK\|ERROR\) SUMMARY: \([0-9]*\) .*/\2/p' "$log" | tail -n 1)
  [ -z "$found" ] && found=failed
  [ "$found" = 0 ] && [ $code != 0 ] && found=failed
  [ "$found" = 0 ] || echo "$found"
}

# The options of a problem: causal at head dimension 128. A stage that is not an attention kernel has its own problem.
problem() {
  is_attention "$1" || return
  causal=
  [ "$2" = 128 ] && causal=--causal
  echo "--batch=1 --heads=2 --seqlen=97 --head-dim=$2 $causal"
}

row='%-10s %10s %10s %10s %10s\n'
# shellcheck disable=SC2059
printf "$row" stage memcheck racecheck initcheck synccheck
blamed=
for stage in "$@"; do
  name=$(basename "$stage")
  dims="64 128"
  is_attention "$stage" || dims=64
  # All at the same time: what a tool does is mostly the CPU's work.
  for tool in memcheck racecheck initcheck synccheck; do
    for head_dim in $dims; do
      log=$logs/$name-$tool-$head_dim.log
      # shellcheck disable=SC2046
      check "$tool" "$log" "$stage" --device=gpu --repeat=0 $(problem "$stage" "$head_dim") >"$log.found" &
    done
  done
  wait
  printf '%-10s' "$name"
  for tool in memcheck racecheck initcheck synccheck; do
    cell=clean
    for head_dim in $dims; do
      log=$logs/$name-$tool-$head_dim.log
      found=$(cat "$log.found")
      [ "$found" ] && cell=$found blamed="$blamed $log"
    done
    printf ' %10s' "$cell"
  done
  echo
done
for log in $blamed; do
  echo
  echo "$log:"
  grep -v '^========= COMPUTE-SANITIZER' "$log" | head -n 12
done
echo "Not seen by any of them: races with wgmma's reads or with tensor copies' writes, a missing fence.proxy.async."
echo "For these: ./stage-NN --device=emulator"
[ -z "$blamed" ]
