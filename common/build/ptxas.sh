#!/bin/sh
# Assembles a stage's PTX for sm_90a and refuses what ptxas only mentions:
#
#   ptxas.sh NVCC KERNEL.ptx KERNEL.cubin [stack] [spills] [serialised]
#
# A stack frame or a spill means that "registers" live in local memory, which is device memory; a serialised wgmma
# (C7510 to C7519) waits for each instruction. A stage may allow one by name. ptxas's words stay in KERNEL.log.
nvcc=$1 ptx=$2 cubin=$3
shift 3
log=${cubin%.cubin}.log

"$nvcc" -arch=sm_90a -lineinfo -Xptxas -v -cubin "$ptx" -o "$cubin.partial" >"$log" 2>&1 || { cat "$log" >&2; exit 1; }

# refuse NAME PATTERN MEANING: fails when the log has a line with the pattern and the stage does not allow it.
refuse() {
  case " $allowed " in *" $1 "*) return ;; esac
  if grep -qE "$2" "$log"; then
    grep -E "$2|Compiling entry" "$log" >&2
    echo "ptxas.sh: $ptx: $3; a lesson on it allows it in its stage.mk with the word $1" >&2
    exit 1
  fi
}
allowed="$*"
refuse spills '[^0-9][1-9][0-9]* bytes spill' 'registers are spilled to local memory'
refuse stack '[^0-9][1-9][0-9]* bytes stack frame' 'the kernel has a stack frame'
refuse serialised 'C751[0-9]' 'wgmma is serialised'
mv "$cubin.partial" "$cubin"
