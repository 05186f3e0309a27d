#!/bin/sh
# Records what the stages do, as the emulator counts it, in plots/data/counters.csv:
#
#   counters.sh ./stage-00 ./stage-01 ...
#
# One head of SHORT and of LONG queries and keys, both head dimensions, with and without a causal mask: heads do not
# differ, so B x H of them do B x H times as much. The short ones take a second, and are counted again by the tests. A
# stage whose short ones are as recorded keeps its rows; the long ones take minutes. The file is replaced only when all
# has gone well.
. "$(dirname "$0")/need.sh"
SHORT=256 LONG=4096
file=plots/data/counters.csv

need_writable plots/data
rows=$(mktemp) || exit 1
trap 'rm -f "$rows" "$rows.counts" "$rows.report"' EXIT

# Prints the header and four rows of a stage with seqlen $2.
count() {
  : >"$rows.counts"
  for head_dim in 64 128; do
    for mask in "" --causal; do
      # shellcheck disable=SC2086
      "$1" --device=emulator --hazards=off --batch=1 --heads=1 --seqlen="$2" --head-dim=$head_dim $mask \
        --counters-csv=- >>"$rows.counts" 2>"$rows.report" || { code=$?; cat "$rows.report" >&2; return $code; }
    done
  done
  # Without the counters of overlap, which come last: no plot has them, and some depend on the order of the blocks.
  awk -F, 'NR == 1 { for (last = 1; last < NF && $(last + 1) != "inst_under_wgmma"; last++); }
           NR == 1 || NR % 2 == 0 { for (i = 1; i <= last; i++) printf "%s%s", $i, i < last ? FS : ORS }' "$rows.counts"
}

for stage in "$@"; do
  if ! is_attention "$stage"; then
    echo "$stage is not an attention kernel: not counted" >&2
    continue
  fi
  short=$(count "$stage" $SHORT) || exit
  name=$(echo "$short" | sed -n '2s/,.*//p')
  [ -s "$rows" ] || echo "$short" | head -n 1 >"$rows"
  recorded=$(head -n 1 $file 2>&-; grep "^$name,1,1,$SHORT," $file 2>&-)
  if [ "$short" = "$recorded" ] && [ "$(grep -c "^$name,1,1,$LONG," $file)" = 4 ]; then
    echo "$stage is as recorded" >&2
    grep "^$name," $file >>"$rows"
  else
    echo "$stage, seqlen $LONG: counting" >&2
    long=$(count "$stage" $LONG) || exit
    { echo "$short"; echo "$long"; } | grep "^$name," >>"$rows"
  fi
done
cp "$rows" $file.new && mv $file.new $file || exit 2
echo "recorded $file; \`make plot\` draws it" >&2
