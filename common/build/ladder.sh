#!/bin/sh
# Runs every stage, on the GPU or the emulator, and prints one table. Exits 1 when a stage is wrong.
#
#   ladder.sh "OPTIONS" ./stage-00 ./stage-01 ...
#
# OPTIONS are the stages' own ("--seqlen=1024 --causal"). On a GPU the table has times and each stage's speedup over the
# one before. The emulator has no clock: there it has what the kernels did.
options=$1
shift
report=$(mktemp) || exit 1
trap 'rm -f "$report"' EXIT
