#!/bin/sh
# Records the counters of every case of cases.h with Nsight Compute, on a Hopper GPU:
#
#   sh tests/counters/record.sh tests/counters/h200.csv [raw.csv]
#
# raw.csv gets what Nsight Compute printed, whether or not a table could be made of it.
# One row a case, one column a counter that is not zero in every case. Most counters are asked of the kernels that move
# them only, which takes less time: the others' cells are empty. What this Nsight Compute does not know is left out, and it
# is said. The clocks are left alone; counters do not depend on them.
set -e
[ $# = 1 ] || [ $# = 2 ] || { echo 'usage: record.sh OUTPUT.csv [RAW.csv]' >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
PATH=$PATH:/usr/local/cuda/bin

# Runs Nsight Compute on set $1, with further options; it writes to $2.
count() {
  set_name=$1 log=$2
  shift 2
  ncu --clock-control none --cache-control none --csv --page raw --kernel-name-base function --print-units base \
    --kernel-name "regex:^($(cat "$work/$set_name.kernels"))\$" "$@" --log-file "$log" \
    --metrics "$(sed 's/$/.sum/' "$work/$set_name.counters" | paste -sd, -)" "$work/record" "$work/patterns.cubin"
}

# Some counters that ncu lists it cannot collect, and then it collects nothing: those of set $1 are left out.
leave_out_what_fails() {
  counters=$work/$1.counters
  until count "$1" "$work/first.csv" --launch-count 1 >"$work/first" 2>&1; do
    cat "$work/first" "$work/first.csv" >"$work/said" 2>/dev/null || true
    grep -oE '(l1tex|lts|smsp|sm)__[a-z0-9_]+' "$work/said" | sort -u >"$work/named" || true
    comm -23 "$counters" "$work/named" >"$work/fewer"
    if [ ! -s "$work/fewer" ] || cmp -s "$work/fewer" "$counters"; then cat "$work/said" >&2; exit 1; fi
    echo "record.sh: this ncu cannot collect $(comm -12 "$counters" "$work/named" | paste -sd' ' -)" >&2
    mv "$work/fewer" "$counters"
  done
}

# Counts set $1, of the kernels $2. The counters: extended regular expressions of whole names, from the standard input.
record_set() {
  echo "$2" >"$work/$1.kernels"
  awk -F, -v kernels="^($2)\$" '$2 ~ kernels' "$work/cases" >"$work/$1.cases"
  while read -r family; do
    grep -xE "$family" "$work/known" || echo "record.sh: this ncu knows no $family" >&2
  done | sort -u >"$work/$1.counters"
  [ -s "$work/$1.counters" ] || { echo "record.sh: ncu lists none of the counters of '$1'" >&2; exit 1; }
  leave_out_what_fails "$1"
  echo "record.sh: $1: $(wc -l <"$work/$1.cases") launches, $(wc -l <"$work/$1.counters") counters" >&2
  count "$1" "$work/$1.raw" || { tail -5 "$work/$1.raw" >&2; exit 1; }
  [ -z "$raw" ] || cat "$work/$1.raw" >>"$raw"
  tables="$tables $1.cases $1.raw"
}

raw=$2 tables=
[ -z "$raw" ] || : >"$raw"
nvcc -O3 -gencode arch=compute_90a,code=sm_90a -cubin "$here/patterns.cu" -o "$work/patterns.cubin"
nvcc -O2 "$here/record.c" -o "$work/record"
"$work/record" --list >"$work/cases"
{ ncu --query-metrics --chips gh100 || ncu --query-metrics; } | awk '{ print $1 }' | sort -u >"$work/known"

record_set all '.*' <<'END'
smsp__(inst_executed|thread_inst_executed|thread_inst_executed_pred_on)
sm__inst_executed_pipe_tensor_op_(hmma|gmma)
sm__ops_path_tensor_src_bf16_dst_fp32
l1tex__data_bank_conflicts_pipe_lsu_mem_shared(_op_(ld|st|atom))?
l1tex__data_pipe_lsu_wavefronts_mem_shared(_op_(ld|st|atom))?
l1tex__t_(requests|sectors)_pipe_lsu_mem_global_op_(ld|st|atom|red|ldgsts_cache_access)
END

# What units beside the warps' loads and stores move, and local memory.
record_set traffic '(bulk|tensor|local|(ld|st|atom)_cluster(_own)?)_.*' <<'END'
l1tex__t_(requests|sectors)_pipe_lsu_mem_local_op_(ld|st)
l1tex__m_xbar2l1tex_read_sectors_mem_global_op_tma_ld
l1tex__m_l1tex2xbar_write_sectors_mem_(global_op_tma_(st|red)|dshared_op_tma_st)
lts__t_sectors_srcunit_tex
END

# Classes of instructions, and the pipe that the special functions share with conversions.
record_set classes 'repeat_.*' <<'END'
smsp__inst_executed_pipe_xu
smsp__sass_thread_inst_executed_op_(integer|bit|fp16|fp32|fp64|conversion|control|memory|misc|inter_thread_communication|uniform)_pred_on
END

# Requests and bytes, which are counted by code that Nsight Compute adds to a kernel.
record_set requests 'repeat_.*|(ld|st)_(shared|global)_b(16|128)|ld_generic_mixed|(ld|st|atom)_cluster_.*|ldmatrix_x4|stmatrix_x4|wmma_.*|atom_.*|red_.*|cp_async_.*|(bulk|tensor|local)_.*|wgmma_n64|wgmma_n64_a_registers' <<'END'
smsp__sass_inst_executed_op_shared
smsp__sass_data_bytes_mem_(global|local)
END

# The words of shared memory that copies read and write.
record_set banks 'bulk_.*|tensor_(reduce|load_multicast)' <<'END'
l1tex__data_bank_(reads|writes)
END

record_set cluster '(ld|st|atom)_cluster_.*' <<'END'
l1tex__t_(requests|sectors)_pipe_lsu_mem_dshared_op_(ld|st|atom)
END

device=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -1)
(
  echo "# $device; $(ncu --version | tail -1); $(nvcc --version | grep release); $(date -u +%Y-%m-%d)"
  cd "$work"
  # shellcheck disable=SC2086
  awk -f "$here/table.awk" cases $tables
) >"$work/table.csv"
cp "$work/table.csv" "$1"
