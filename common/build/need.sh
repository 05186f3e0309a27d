# Sourced by the scripts that need a GPU or one of NVIDIA's tools: one line says what is missing, exit code 3. And by those
# that write files.

missing() { echo "$(basename "$0" .sh): $*" >&2; exit 3; }

# need_writable FOLDER...: makes them, and sees that a file can be written there, before the work whose result it is to hold.
need_writable() {
  for folder; do
    { mkdir -p "$folder" && echo yes >"$folder/.writable" && [ -s "$folder/.writable" ]; } 2>&- &&
      rm "$folder/.writable" &&
      continue
    echo "$(basename "$0" .sh): $folder cannot be written: the disk is full, the tree is read-only, or it is no folder" >&2
    exit 2
  done
}

# Whether a stage is an attention kernel of the ladder: others have a problem of their own, with other options.
is_attention() { "$1" --help | grep -q '^  --seqlen=' && ! "$1" --help | grep -q '^  --window='; }

# need_gpu STAGE: the stage's program says whether there is a GPU that it runs on, and why not.
need_gpu() {
  smallest=
  is_attention "$1" && smallest="--batch=1 --heads=1 --seqlen=1"
  # shellcheck disable=SC2086
  why=$("$1" --device=gpu --repeat=0 $smallest 2>&1) || [ $? != 3 ] ||
    missing "this needs a Hopper GPU: the emulator has no clock and is not hardware (${why#*: --device=gpu: })"
}

# need_tool NAME CUDA: on PATH, or in the CUDA toolkit's folder.
need_tool() {
  PATH=$PATH:$2/bin:$2/compute-sanitizer:/usr/local/cuda/bin
  command -v "$1" >/dev/null ||
    missing "$1 is not on PATH nor in $2; it comes with NVIDIA's CUDA toolkit (the pip wheels do not have it)"
}
