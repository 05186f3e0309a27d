#!/bin/sh
# On a Hopper GPU, from the repository's root, after `make hopper-run mathematics MATHEMATICS_FLAGS=...`: computes
# everything on the GPU and on the emulator, and compares.
#
#   sh tests/mathematics/on-gpu.sh OUT
#
# Leaves in OUT what tests/mathematics has: h100.txt (hashes of the GPU's results), approximate.txt (the functions that
# differ on the emulator) and samples.bin (their first results); and to find a model with: differences.txt (examples),
# samples.tar.gz (first results of all functions), deltas.gz (of the approximate instructions), times.txt. NATIVE stands before the programs that run on the GPU; with
# NATIVE='./hopper-run --hazards=off' the script can be tried without one.
out=$1
programs=${PROGRAMS:-approximate float float-fast double half half-fast bfloat16 bfloat16-fast integer conversion conversion-fast}
[ "$(df --output=avail /dev/shm | tail -1)" -gt 30000000 ] && in=/dev/shm || in=/tmp # 8 GB from each of the two
scratch=$(mktemp -d -p $in)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/samples"
say() { echo "$(date +%T) $*" | tee -a "$out/times.txt"; }
# $1: how many at a time; $2: what is done with program $1, in the folder $2.
each() { for p in $programs; do echo "$p $scratch"; done | xargs -P "$1" -L 1 sh -ec "$2" - || say "this failed: $2"; }

say begin
each 2 "$NATIVE build/mathematics/\$1 compute \$2/\$1.gpu"
say the GPU has computed
each 5 './hopper-run --hazards=off build/mathematics/$1 compute $2/$1.emulator 2>$2/$1.log || cat $2/$1.log'
say the emulator has computed
each 11 'm=build/mathematics/$1; $m compare $2/$1.gpu $2/$1.emulator >$2/$1.differences; $m hashes $2/$1.gpu >$2/$1.hashes
  $m head $2/$1.gpu $2/samples/$1 1024'
rm -f "$out/samples.bin"
for p in $programs; do
  echo "== $p" && build/mathematics/$p approximate "$scratch/$p.gpu" "$scratch/$p.emulator" "$out/samples.bin"
done >"$out/approximate.txt"
for p in $programs; do echo "== $p" && cat "$scratch/$p.differences"; done >"$out/differences.txt"
for p in $programs; do echo "== $p" && cat "$scratch/$p.hashes"; done >"$out/h100.txt"
tar -C "$scratch/samples" -czf "$out/samples.tar.gz" .
build/mathematics/approximate deltas "$scratch/approximate.gpu" "$scratch/approximate.emulator" | gzip >"$out/deltas.gz"
say compared
