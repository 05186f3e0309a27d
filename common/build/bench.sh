#!/bin/sh
# Records how fast the stages are on this machine's GPU, in plots/data/DEVICE.csv (nvidia-h200.csv):
#
#   bench.sh ./stage-00 ./stage-01 ...
#
# Each runs on a grid of problems that hold 16384 tokens and a model width of 2048: every SEQLENS with both head
# dimensions, with and without a causal mask, REPEAT times each; PyTorch's attention, where it is installed, on the same. The file is replaced only when all has gone well.
: "${SEQLENS:=512 1024 2048 4096 8192 16384}" "${REPEAT:=20}"

rows=$(mktemp) || exit 1
trap 'rm -f "$rows"' EXIT

for stage in "$@"; do
  for head_dim in 64 128; do
    for mask in "" --causal; do
      for seqlen in $SEQLENS; do
        batch=$((16384 / seqlen))
        problem="--batch=$((batch > 0 ? batch : 1)) --heads=$((2048 / head_dim)) --seqlen=$seqlen --head-dim=$head_dim $mask"
        echo "$stage $problem" >&2
        # Two lines on standard output, a header and a row, and the report on standard error.
        csv=$("$stage" --device=gpu $problem --repeat="$REPEAT" --csv=- 2>"$rows.report") ||
          { code=$?; cat "$rows.report" >&2; rm -f "$rows.report"; exit $code; }
        rm -f "$rows.report"
        [ -s "$rows" ] || echo "$csv" | sed -n 1p >"$rows"
        echo "$csv" | sed -n 2p | tee -a "$rows" >&2
      done
    done
  done
done

# The peers, in the same run, where PyTorch is installed.
if python3 -c 'import torch' 2>/dev/null; then
  echo "FlashAttention-2 and cuDNN, through PyTorch" >&2
  python3 plots/peers.py "$SEQLENS" "$REPEAT" | tee -a "$rows" >&2
else
  echo "no PyTorch here: FlashAttention-2 and cuDNN are not measured" >&2
fi

device=$(sed -n 2p "$rows" | cut -d, -f2 | tr 'A-Z ' 'a-z-' | tr -cd 'a-z0-9-')
mkdir -p plots/data
cp "$rows" "plots/data/$device.csv"
echo "recorded plots/data/$device.csv; \`make plot\` draws it" >&2
