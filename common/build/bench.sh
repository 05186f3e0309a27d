#!/bin/sh
# Records how fast the stages are on this machine's GPU, in plots/data/DEVICE.csv (nvidia-h200.csv):
#
#   bench.sh ./stage-00 ./stage-01 ...
#
# Each runs on a grid of problems that hold 16384 tokens and a model width of 2048: every SEQLENS with both head
# dimensions, with and without a causal mask, REPEAT times each; PyTorch's attention, where it is installed, on the same.
#
# Rows wait in build/bench until all are there: an interrupted run goes on where it was, and the recorded file is
# replaced only when all has gone well. A row is kept for one program, GPU and REPEAT; when one of them changes, it is
# measured again. A stage that is not an attention kernel measures what it has to, for plots/data/STAGE/DEVICE.csv.
. "$(dirname "$0")/progress.sh"
. "$(dirname "$0")/need.sh"
export LC_ALL=C # a point is a point
: "${SEQLENS:=512 1024 2048 4096 8192 16384}" "${REPEAT:=20}"
kept=build/bench
report=$kept/report
before=plots/data/nvidia-h200.csv # what the rows are compared with
[ -f $before ] || before=/dev/null
stages= others= files=
finished=0

# Ends with an exit code, and says what is not lost.
stop() {
  progress ''
  [ $finished = 0 ] || echo "bench: $finished of $count rows are in $kept; make bench goes on from there" >&2
  exit "$1"
}

# Stops when a word of the variable $1 is not a whole number.
whole_numbers() {
  for word in $2; do
    case $word in
    *[!0-9]* | 0*) echo "bench: $1=$2: whole numbers are allowed, from 1 on" >&2; exit 2 ;;
    esac
  done
}

# Runs the stage with the options $2... once. Its row appears in the file $1 when it is whole. Returns the stage's exit
# code.
row() {
  file=$1
  shift
  rm -f "$file.part"
  "$stage" --device=gpu "$@" --csv="$file.part" >$report 2>&1 || return
  [ ! -s "$file.part" ] || mv "$file.part" "$file"
}

# Sees that every stage runs here. Sets stages to STAGE:KEY words, where KEY stands for the program, the GPU and REPEAT,
# and others to the stages that write no row of attention.
try_stages() {
  for stage in "$@"; do
    progress "trying $stage"
    rm -f $kept/tried
    row $kept/tried --batch=1 --heads=1 --seqlen=128 --repeat=1
    code=$?
    progress ''
    if grep -q ,batch,heads,seqlen, $kept/tried 2>/dev/null; then
      key=$({ cat "$stage"; grep '^device' $report; echo "$REPEAT"; } | cksum | tr ' ' -)
      stages="$stages $stage:$key"
    elif [ $code = 0 ] || [ $code = 2 ]; then
      others="$others $stage"
    elif [ $code = 3 ] && [ "$stages$others" ]; then
      # Another has run before it, so there is a GPU, and something else is missing.
      echo "$stage is left out: $(tail -n 1 $report)"
    else
      cat $report >&2
      [ $code != 3 ] || echo "bench: only a GPU can time a kernel; plots/data/nvidia-h200.csv has an H200's times" >&2
      stop $code
    fi
  done
}

# The device that a CSV's first row names, as a file's name: nvidia-h200.
device_of() { sed -n 2p "$1" | cut -d, -f2 | tr 'A-Z ' 'a-z-' | tr -cd 'a-z0-9-'; }

# Records what a stage measures that is not an attention kernel, if it has a CSV: of a matrix product two sizes.
bench_other() {
  own=$kept/own
  rm -f $own
  progress "$stage: not an attention kernel, with times of its own"
  case $("$stage" --help 2>&1) in *' --size='*) others_sizes='--size=4096 --size=8192' ;; *) others_sizes= ;; esac
  row $own --repeat="$REPEAT" ${others_sizes%% *}
  code=$?
  if [ $code = 0 ] && [ "$others_sizes" ]; then
    row $own.more --repeat="$REPEAT" ${others_sizes##* } && sed 1d $own.more >>$own
    code=$?
  fi
  progress ''
  if [ ! -s $own ] && { [ $code = 0 ] || [ $code = 2 ]; }; then
    echo "$stage is left out: it writes no times: $(tail -n 1 $report)"
    return
  fi
  [ $code = 0 ] || { cat $report >&2; stop $code; }
  folder=plots/data/$(sed -n 2p $own | cut -d, -f1)
  after=$folder/$(device_of $own).csv
  mkdir -p "$folder" && mv $own "$after" && echo "times of $stage: $after"
}

# Measures the stage on all problems, or takes the rows that are there already, and prints them as they come.
bench() {
  for head_dim in 64 128; do
    for mask in "" --causal; do
      for seqlen in $SEQLENS; do
        batch=$((seqlen < 16384 ? 16384 / seqlen : 1))
        heads=$((2048 / head_dim))
        file=$kept/$key-$batch-$heads-$seqlen-$head_dim$mask.csv
        progress "[$finished/$count] $stage --seqlen=$seqlen --head-dim=$head_dim $mask"
        note=kept
        if [ ! -s "$file" ]; then
          note=
          row "$file" --batch=$batch --heads=$heads --seqlen="$seqlen" --head-dim=$head_dim $mask --repeat="$REPEAT" ||
            { code=$?; progress ''; cat $report >&2; stop $code; }
        fi
        finished=$((finished + 1))
        files="$files $file"
        progress ''
        awk -v note=$note -f common/build/compare.awk $before "$file"
      done
    done
  done
}

# The peers, on the same problems, where PyTorch is installed.
bench_peers() {
  python3 -c 'import torch' 2>/dev/null ||
    { echo "no PyTorch here: FlashAttention-2 and cuDNN are not measured"; return; }
  progress "FlashAttention-2 and cuDNN, through PyTorch"
  points=$(printf '*/*/%s,' $SEQLENS)
  python3 plots/peers.py --stages=none --peers=FlashAttention-2,cuDNN --points="${points%,}" --rounds="$REPEAT" \
    --csv=$kept/peers >$report || stop $?
  progress ''
  sed 1d $kept/peers | cut -d, -f1-16 >>$kept/all # without the mode
}

whole_numbers SEQLENS "$SEQLENS"
whole_numbers REPEAT "$REPEAT"
trap 'stop 130' INT TERM
need_writable $kept plots/data
try_stages "$@"
for stage in $others; do bench_other; done
count=$(($(echo "$stages" | wc -w) * $(echo "$SEQLENS" | wc -w) * 4))
[ $count != 0 ] || { [ "$others" ] && stop 0; stop 1; }
echo "stage                          S    D    mask         ms TFLOPS  recorded on an H200"
for word in $stages; do
  stage=${word%:*}
  key=${word##*:}
  bench
done

# shellcheck disable=SC2086
awk 'NR == 1 || FNR > 1' $files >$kept/all || exit 1
bench_peers
# shellcheck disable=SC2086
awk -v summary="$SEQLENS" -f common/build/compare.awk $before $kept/all
after=plots/data/$(device_of $kept/all).csv
mv $kept/all "$after" && rm -rf $kept
echo "times: $after"
