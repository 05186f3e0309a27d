#!/bin/sh
# Provides what the build needs and this machine lacks, and says what it installs:
#
#   deps.sh nvcc DIRECTORY   NVIDIA's CUDA compiler from its pip wheels, into DIRECTORY (no root needed)
#   deps.sh criterion        the test framework, from the system's packages
#   deps.sh gnuplot          for the plots, from the system's packages
#   deps.sh emscripten       the compiler to WebAssembly and node, from the system's packages
#   deps.sh nvdisasm DIRECTORY   NVIDIA's disassembler from its pip wheel, into DIRECTORY
#   deps.sh older DIRECTORY RELEASE   ptxas and NVRTC of an older CUDA, from its pip wheels, into DIRECTORY
#
# What is there already is left alone and costs a fraction of a second to find. Packages need root: as root or through
# a sudo that asks no password they are installed, otherwise the command to type is printed and the exit code is 1.

# The compiler's parts, pinned to one CUDA release. cuda-runtime holds the headers (cuda.h, cuda_fp16.h), cuda-cccl the
# C++ headers that some of those include.
WHEELS="nvidia-cuda-nvcc==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-crt==13.0.88
        nvidia-cuda-runtime==13.0.88 nvidia-cuda-cccl==13.0.85"

# The same of an older release: ptxas comes in nvcc's wheel (nvcc itself in none before 13), NVRTC is the compiler
# inside nvcc as a library. 12.0 as it first came, the others in their last update; of 11.8, which knows no wgmma, only
# ptxas.
older_wheels() {
  case $1 in
    11.8) wheels="nvidia-cuda-nvcc-cu11==11.8.89"; return ;;
    12.0) set -- 12.0.76 12.0.76 12.0.107 12.0.90 ;;
    12.1) set -- 12.1.105 12.1.105 12.1.105 12.1.109 ;;
    12.2) set -- 12.2.140 12.2.140 12.2.140 12.2.140 ;;
    12.3) set -- 12.3.107 12.3.107 12.3.101 12.3.101.post1 ;;
    12.4) set -- 12.4.131 12.4.127 12.4.127 12.4.127.post1 ;;
    12.5) set -- 12.5.82 12.5.82 12.5.82 12.5.39.post1 ;;
    12.6) set -- 12.6.85 12.6.85 12.6.77 12.6.77 ;;
    12.8) set -- 12.8.93 12.8.93 12.8.90 12.8.90 ;;
    12.9) set -- 12.9.86 12.9.86 12.9.79 12.9.27 ;;
    *) fail "CUDA $1 is not one of 11.8, 12.0 to 12.6, 12.8, 12.9 (there was no 12.7)" ;;
  esac
  wheels="nvidia-cuda-nvcc-cu12==$1 nvidia-cuda-nvrtc-cu12==$2 nvidia-cuda-runtime-cu12==$3 nvidia-cuda-cccl-cu12==$4"
}

say() { echo "deps: $*" >&2; }
fail() { say "$*"; exit 1; }

scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT

# One at a time: make -j asks for several things at once, and apt-get cannot share its lock.
mkdir -p build && exec 9>build/deps.lock
command -v flock >/dev/null && flock 9

# nvcc drives a C++ compiler even for kernels, and a machine with gcc alone has none.
have_cxx() { echo '#include <cstring>' | "${CXX:-g++}" -x c++ -fsyntax-only - 2>/dev/null; }

have_criterion() {
  printf '#include <criterion/criterion.h>\nTest(a, b) {}\n' |
    "${CC:-cc}" -x c - -lcriterion -o "$scratch/probe" 2>/dev/null
}

have_gnuplot() { gnuplot -e 'set terminal svg' >/dev/null 2>&1; }

have_emscripten() { command -v emcc >/dev/null && command -v node >/dev/null; }

have_pip() { python3 -m pip --version >/dev/null 2>&1; }

# The system's package manager; none: it is another one.
manager=none
for known in apt-get dnf pacman; do
  [ "$manager" = none ] && command -v $known >/dev/null && manager=$known
done

# What that manager calls each package. Arch has Criterion in its user repository alone, which pacman does not install.
packages() {
  for part; do
    case $manager:$part in
      dnf:g++) echo gcc-c++ ;;
      dnf:criterion) echo criterion-devel ;;
      pacman:g++) echo gcc ;;
      pacman:pip) echo python-pip ;;
      pacman:criterion) echo criterion ;;
      *:criterion) echo libcriterion-dev ;;
      *:pip) echo python3-pip ;;
      apt-get:gnuplot) echo gnuplot-nox ;;
      *) echo "$part" ;;
    esac
  done
}

install_command() {
  case $manager in
    apt-get) echo "apt-get install -y --no-install-recommends" ;;
    dnf) echo "dnf install -y" ;;
    pacman) echo "pacman -S --needed --noconfirm" ;;
  esac
}

# All parts that are missing, so that one command installs them.
missing_parts() {
  have_cxx || echo g++
  command -v nvcc >/dev/null || [ -d build/cuda ] || have_pip || echo pip
  have_criterion || [ $manager = pacman ] || echo criterion
  have_gnuplot || echo gnuplot
}

# install_parts WHAT PART...: installs the packages of these parts, or says what to type.
install_parts() {
  what=$1
  shift
  # shellcheck disable=SC2046
  set -- $(packages "$@")
  [ $manager != none ] || fail "$what is missing; install it with your system's packages (on Debian: $*)"
  [ "$manager $*" != "pacman criterion" ] ||
    fail "$what is missing; it is in Arch's user repository: https://aur.archlinux.org/packages/criterion"
  if [ "$(id -u)" = 0 ]; then
    root="env"
  elif sudo -n true 2>/dev/null; then
    root="sudo -n env"
  else
    # shellcheck disable=SC2046
    fail "$what is missing; type: sudo $(install_command)" $(packages $(missing_parts))
  fi
  say "$what is missing; installing the system's packages: $*"
  install="$root DEBIAN_FRONTEND=noninteractive $(install_command) $*"
  # Fresh containers of Debian have no package lists and old ones stale lists: on failure, fetch them and try again.
  $install >"$scratch/log" 2>&1 ||
    { [ $manager = apt-get ] && $root apt-get update && $install; } >>"$scratch/log" 2>&1 ||
    { tail -n 20 "$scratch/log" >&2; fail "installing $* failed (its last lines are above)"; }
}

# A pip that can install into a directory. `--target` is allowed on machines whose Python belongs to the system (PEP
# 668), because it leaves that Python alone.
find_pip() {
  python=python3
  have_pip && return
  python3 -m venv "$scratch/venv" >/dev/null 2>&1 && python=$scratch/venv/bin/python && return
  install_parts "pip (to fetch the CUDA compiler)" pip ca-certificates
}

# install_wheels DIRECTORY WHEEL...: into DIRECTORY.partial, which the caller renames when all is well: an interrupted
# download leaves nothing that looks finished.
install_wheels() {
  directory=$1
  shift
  find_pip
  say "$*"
  rm -rf "$directory" "$directory.partial"
  mkdir -p "$directory.partial"
  PIP_USER=0 PIP_REQUIRE_VIRTUALENV=0 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore \
    "$python" -m pip install --quiet --no-deps --no-compile --only-binary=:all: --target "$directory.partial" "$@"
}

install_nvcc() {
  say "no nvcc on PATH or in CUDA_HOME; installing NVIDIA's wheels into $1 (about 250 MB):"
  # shellcheck disable=SC2086
  install_wheels "$1" $WHEELS ||
    fail "pip could not install the CUDA compiler; install CUDA 12.0 or newer yourself and set CUDA_HOME"
  mv "$1.partial" "$1"
}

# It reads cubins of older releases too.
install_nvdisasm() {
  say "no nvdisasm on PATH or in the CUDA toolkit; installing NVIDIA's wheel into $1 (5 MB):"
  install_wheels "$1" nvidia-cuda-nvdisasm==13.2.51 || fail "pip could not install nvdisasm"
  mv "$1.partial" "$1"
}

# An older release as bin, lib and include; most of what its wheels hold is neither needed nor kept.
install_older() {
  older_wheels "$2"
  say "installing NVIDIA's wheels of CUDA $2 into $1:"
  # shellcheck disable=SC2086
  install_wheels "$1" $wheels || fail "pip could not install CUDA $2"
  parts=$1.partial/nvidia
  mkdir "$1.partial/bin" "$1.partial/lib"
  mv "$parts"/cuda_nvcc/bin/ptxas "$1.partial/bin"
  [ ! -d "$parts/cuda_nvrtc" ] ||
    mv "$parts"/cuda_nvrtc/lib/libnvrtc.so.12 "$parts"/cuda_nvrtc/lib/libnvrtc-builtins.so.* "$1.partial/lib"
  cp -r "$parts"/*/include "$1.partial"
  rm -rf "$parts" "$1.partial"/*.dist-info
  mv "$1.partial" "$1"
}

case $1 in
  nvcc)
    have_cxx || install_parts "a C++ compiler (nvcc needs one)" g++
    [ -z "$2" ] || [ -x "$2/nvidia/cu13/bin/nvcc" ] || install_nvcc "$2"
    ;;
  nvdisasm) [ -x "$2/nvidia/cu13/bin/nvdisasm" ] || install_nvdisasm "$2" ;;
  older) [ -x "$2/bin/ptxas" ] || install_older "$2" "$3" ;;
  criterion) have_criterion || install_parts Criterion criterion ;;
  gnuplot) have_gnuplot || install_parts gnuplot gnuplot ;;
  emscripten) have_emscripten || install_parts Emscripten emscripten nodejs ;;
  *) fail "usage: deps.sh nvcc DIRECTORY | criterion | gnuplot | emscripten | nvdisasm DIRECTORY | older DIRECTORY RELEASE" ;;
esac
