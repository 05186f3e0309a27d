#!/bin/sh
# Compiles the stages' kernels with older CUDA releases, and prints one table:
#
#   cuda12.sh NVRTC BIN PTXAS "RELEASES" "NN-name ALLOWED..." ...
#
# NVRTC is the program of tests/cuda/nvrtc.c, BIN the folder of the stages' programs. For each release, from its pip
# wheels: tests/cuda/claims is put to its ptxas; each kernel goes through its NVRTC and its ptxas by the rules of
# ptxas.sh; and the PTX runs on the emulator. The last row is the release of PTXAS, which has built the stages.
driver=$1 bin=$2 own_ptxas=$3 releases=$4
shift 4
made=build/cuda12
. "$(dirname "$0")/need.sh"
mkdir -p $made
: >$made/failures
: >$made/answers
: >$made/remarks

# Whether one of the patterns is the release.
concerns() {
  set -f
  for pattern in $1; do
    # shellcheck disable=SC2254
    case $release in $pattern) set +f; return 0 ;; esac
  done
  set +f
  return 1
}

# ask CLAIM EDIT ANSWER: changes wgmma.ptx and compares what ptxas says with what it must say.
ask() {
  sed "$2" tests/cuda/wgmma.ptx >$made/claim.ptx
  if [ "$2" ] && cmp -s tests/cuda/wgmma.ptx $made/claim.ptx; then
    echo "$1: the edit \"$2\" changes nothing in tests/cuda/wgmma.ptx" >>$made/failures
    return 1
  fi
  said=$("$ptxas" -arch=sm_90a $made/claim.ptx -o $made/claim.cubin 2>&1)
  words=$(echo "$said" | sed -n '1s/^ptxas.*\(error\|fatal\|info\) *: //p' | cut -c1-100)
  echo "$1|$release|${words:-(nothing)}" >>$made/answers
  if [ "$3" ]; then echo "$said" | grep -q "$3"; else [ -z "$said" ]; fi && return
  echo "ptxas $release, wgmma.ptx with $1: expected \"$3\", but it said \"$said\"" >>$made/failures
  return 1
}

# Puts every claim about the release to its ptxas. Prints how many of them hold.
ask_all() {
  asked=0 held=0
  while IFS='|' read -r about claim edit answer; do
    concerns "$about" || continue
    asked=$((asked + 1))
    ask "$claim" "$edit" "$answer" && held=$((held + 1))
  done <tests/cuda/claims
  printf '%-8s' "$held/$asked"
}

# What `nvcc -O3 -lineinfo` does in the build, in two steps. Prints what is wrong, if anything is. A word that ends in a
# release, serialised-12.5, allows it with that one only, and the table has a star.
compile() {
  name=$1 allowed= star=
  shift
  for word in "$@"; do
    case $word in *-"$release") star='*' ;; esac
    allowed="$allowed ${word%-"$release"}"
  done
  # math.h: nvcc includes it unasked. default-device: cuda.h declares host functions, which NVRTC does not know. c++20:
  # for designated initialisers, which nvcc takes in C++17 too, as g++ does.
  # shellcheck disable=SC2086
  "$driver" "$toolkit/lib/libnvrtc.so.12" "stages/$name/kernel.cu" "$out/$name.ptx" \
    -arch=compute_90a -std=c++20 -lineinfo -default-device \
    -Itests/cuda/include --pre-include=math.h -Icommon -I"stages/$name" -I"$toolkit/include" &&
    sh common/build/ptxas.sh "$ptxas" "$out/$name.ptx" "$out/$name.cubin" $allowed
}

# Runs a stage on the emulator with this PTX, attention at two shapes. Prints a report that is wrong or has a hazard.
emulate() {
  stage=$bin/stage-${1%%-*} ptx=$out/$1.ptx
  set -- ""
  is_attention "$stage" && set -- "--seqlen=97" "--seqlen=130 --head-dim=128 --causal"
  for shape in "$@"; do
    # shellcheck disable=SC2086
    report=$("$stage" --device=emulator --ptx="$ptx" $shape 2>&1) || { echo "$report"; return 1; }
  done
}

# The most registers that any of a stage's kernels has, from what ptxas said.
registers() { sed -n 's/.*Used \([0-9]*\) registers.*/\1/p' "$1" | sort -n | tail -n 1; }

# One column: the stage's registers, or what went wrong; a line where the release has not what the stage needs.
column() {
  case " $* " in *" refused-$release "*) printf '%8s' -; return ;; esac
  if ! compile "$@" >$made/said 2>&1; then
    cell=refused
  elif ! emulate "$1" >>$made/said 2>&1; then
    cell=WRONG
  else
    printf '%8s' "$(registers "$out/$1.log")$star"
    sed "s/^/CUDA $release: /" $made/said >>$made/remarks
    return
  fi
  printf '%8s' $cell
  { echo "CUDA $release, stage $1: $cell"; cat $made/said; } >>$made/failures
}

row() {
  release=$1 toolkit=build/cuda-$1 out=$made/$1 ptxas=build/cuda-$1/bin/ptxas
  shift
  sh common/build/deps.sh older "$toolkit" "$release" || exit 1
  mkdir -p "$out"
  printf '%-8s' "$release"
  ask_all
  # shellcheck disable=SC2086
  [ ! -e "$toolkit/lib/libnvrtc.so.12" ] || for stage in "$@"; do column $stage; done
  echo
}

# The last row: the release that built the stages.
built_row() {
  ptxas=$own_ptxas
  release=$("$ptxas" --version | sed -n 's/.*release \([0-9.]*\),.*/\1/p')
  printf '%-8s' "$release"
  ask_all
  for stage in "$@"; do printf '%8s' "$(registers "build/kernels/${stage%% *}.log")"; done
  echo
}

echo "Each CUDA release: how many of the claims about wgmma hold, and the registers of each stage's largest kernel."
printf '%-8s%-8s' CUDA claims
for stage in "$@"; do printf '%8s' "${stage%%-*}"; done
echo
for release in $releases; do row "$release" "$@"; done
built_row "$@"

echo
printf 'What ptxas says of tests/cuda/wgmma.ptx:'
sort -s -t'|' -k1,1 $made/answers | awk -F'|' '
  $1 != claim { printf "\n  %s", $1 }
  $1 != claim || $3 != answer { printf "\n    %s:", $3 }
  { printf " %s", $2; claim = $1; answer = $3 }
  END { print "" }'

[ ! -s $made/remarks ] || { echo; cat $made/remarks; }
[ ! -s $made/failures ] || { echo; cat $made/failures; exit 1; } >&2
echo
echo "right: no kernel spills, has a stack frame or a C75xx warning where its stage does not allow it; and all PTX runs"
echo "on the emulator, right and without a hazard. *: a fault of this release, named in the stage's stage.mk"
