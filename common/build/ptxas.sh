#!/bin/sh
# Assembles a stage's PTX for sm_90a and refuses what ptxas only mentions:
#
#   ptxas.sh NVCC KERNEL.ptx KERNEL.cubin [stack] [spills] [serialised] [setmaxnreg]
#
# A stack frame or a spill means that "registers" live in local memory, which is device memory; a serialised wgmma
# (C7509 and up) waits for each instruction; a setmaxnreg may be ignored (C7508 and below). A stage may allow one by name.
# NVCC may also be a ptxas. ptxas's words stay in KERNEL.log; refused.py explains them.
nvcc=$1 ptx=$2 cubin=$3
shift 3
log=${cubin%.cubin}.log

case ${nvcc##*/} in ptxas) verbose=-v ;; *) verbose="-cubin -Xptxas -v" ;; esac

# assemble KERNEL.ptx: into a file that the caller renames when all is well.
assemble() {
  # shellcheck disable=SC2086
  "$nvcc" $verbose -arch=sm_90a -lineinfo "$1" -o "$cubin.partial" >"$log" 2>&1
}

# ptxas 12.0 crashes (the exit code is 128 + the signal) when a kernel's head and a call that is inlined into it stand
# on one line, as in a macro they must. The same PTX without its line numbers does not trouble it.
assemble "$ptx"
code=$?
if [ $code -gt 128 ]; then
  sed '/^\t\.loc\t/d' "$ptx" >"$cubin.ptx"
  assemble "$cubin.ptx"
  code=$?
  rm -f "$cubin.ptx"
  [ $code != 0 ] || echo "ptxas.sh: $ptx: this ptxas crashes on its line numbers; assembled without them" >&2
fi
[ $code = 0 ] || { cat "$log" >&2; exit 1; }

# refuse NAME PATTERN: fails when the log has a line with the pattern and the stage does not allow it. A spill has a stack
# frame, too.
refuse() {
  case " $allowed " in *" $1 "*) return ;; esac
  if grep -qE "$2" "$log"; then
    python3 "${0%/*}/refused.py" "$1" "$ptx" "$log" >&2 || cat "$log" >&2
    exit 1
  fi
}
allowed="$*"
refuse stack '[^0-9][1-9][0-9]* bytes stack frame'
refuse spills '[^0-9][1-9][0-9]* bytes spill'
refuse serialised 'C7509|C75[1-9][0-9]'
refuse setmaxnreg 'C750[0-8]'
mv "$cubin.partial" "$cubin"
