#!/bin/sh
# Runs each stage on the GPU under compute-sanitizer's four tools: sanitize.sh CUDA ./stage-00 ./stage-01 ...
#
# CUDA is the toolkit's folder. The problems are small (the tools slow a kernel down a hundredfold) and end inside a tile.
PATH=$PATH:$1/bin:$1/compute-sanitizer
shift
if ! command -v compute-sanitizer >/dev/null; then
  echo "compute-sanitizer is not on PATH nor in the CUDA toolkit: its four checks are skipped"
  exit 0
fi

# check TOOL STAGE OPTIONS...
check() {
  tool=$1
  shift
  echo "$tool $*"
  said=$(compute-sanitizer --tool="$tool" --error-exitcode=1 "$@" --device=gpu --repeat=0 2>&1) ||
    { echo "$said"; exit 1; }
}
for stage in "$@"; do
  for tool in memcheck racecheck initcheck synccheck; do
    if "$stage" --help | grep -q -e '^  --seqlen='; then
      check $tool "$stage" --batch=1 --heads=2 --seqlen=97 --head-dim=64
      check $tool "$stage" --batch=1 --heads=2 --seqlen=97 --head-dim=128 --causal
    else  # no attention kernel: it has a problem of its own
      check $tool "$stage"
    fi
  done
done
