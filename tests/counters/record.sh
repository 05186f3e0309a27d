#!/bin/sh
# Records the counters of every case of cases.h with Nsight Compute, on a Hopper GPU:
#
#   sh tests/counters/record.sh tests/counters/h200.csv [raw.csv]
#
# raw.csv gets what Nsight Compute printed, whether or not a table could be made of it.
# One row a case, one column a counter: those of the list below that this Nsight Compute knows and that are not zero in
# every case. The clocks are left alone; counters do not depend on them.
set -e
[ $# = 1 ] || [ $# = 2 ] || { echo 'usage: record.sh OUTPUT.csv [RAW.csv]' >&2; exit 2; }
here=$(dirname "$0")
work=$(mktemp -d)
raw=${2:-$work/raw.csv}
trap 'rm -rf "$work"' EXIT

shared='l1tex__data_(bank_conflicts|pipe_lsu_wavefronts)(_pipe_lsu)?_mem_shared(_op_(ld|st|atom|red))?'
global='l1tex__t_(requests|sectors)_pipe_lsu_mem_global_op_(ld|st|atom|red|ldgsts(_cache_(access|bypass))?)'
instructions='smsp__(inst_executed|thread_inst_executed|thread_inst_executed_pred_on)'
tensor='sm__ops_path_tensor_src_(fp16|bf16)_dst_fp32|sm__inst_executed_pipe_tensor_op_(hmma|gmma)'
PATH=$PATH:/usr/local/cuda/bin

nvcc -O3 -gencode arch=compute_90a,code=sm_90a -cubin "$here/patterns.cu" -o "$work/patterns.cubin"
nvcc -O2 "$here/record.c" -o "$work/record"
"$work/record" --list >"$work/cases"

{ ncu --query-metrics --chips gh100 || ncu --query-metrics; } | awk '{ print $1 }' | sort -u >"$work/known"
metrics=$(grep -xE "$shared|$global|$instructions|$tensor" "$work/known" | sed 's/$/.sum/' | paste -sd, -)
[ "$metrics" ] || { echo 'record.sh: ncu lists none of the counters' >&2; exit 1; }

echo "record.sh: $(wc -l <"$work/cases") launches, counters: $metrics" >&2
ncu --clock-control none --cache-control none --csv --page raw --kernel-name-base function --print-units base \
  --metrics "$metrics" --log-file "$raw" "$work/record" "$work/patterns.cubin" ||
  { tail -5 "$raw" >&2; exit 1; }

device=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -1)
{
  echo "# $device; $(ncu --version | tail -1); $(nvcc --version | grep release); $(date -u +%Y-%m-%d)"
  awk -f "$here/table.awk" "$work/cases" "$raw"
} >"$work/table.csv"
cp "$work/table.csv" "$1"
