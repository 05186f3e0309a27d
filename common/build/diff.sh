#!/bin/sh
# Shows what is new in a stage's kernel: diff.sh NN
#
# It is compared with the kernel of the nearest stage below that does the same: attention's forward or backward pass,
# decode, or a matrix product. Each is taken with the headers that stages have for it.
# White space does not count. The first line says how many lines of device code are new. Below, "+" marks a line that is
# new and "-" one that is gone, in colour on a terminal.
export LC_ALL=C # 02 comes before 02b
here=$(dirname "$0")
stage=$(ls -d stages/"$1"-*) || exit 1
pass_of() {
  if grep -qs '[.]backward = true' "$1/stage.c"; then echo 'the backward pass'
  elif grep -qs '[.]gemm =' "$1/stage.c"; then echo 'the matrix products'
  elif grep -qs '[.]decode =' "$1/stage.c"; then echo 'decode'
  else echo 'the forward pass'; fi
}
pass=$(pass_of "$stage")
below=
for each in stages/[0-9][0-9]*-*; do
  [ "$each" = "$stage" ] && break
  grep -qs '[.]launch =\|[.]gemm =\|[.]decode =' "$each/stage.c" && [ "$(pass_of "$each")" = "$pass" ] && below=$each
done
[ "$below" ] || { echo "diff-$1: ${stage#*/} is the lowest stage of $pass; there is none below it" >&2; exit 2; }

work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
awk -v map="$work/below.map" -f "$here/device_lines.awk" "$below/kernel.cu" >"$work/below"
awk -v map="$work/stage.map" -f "$here/device_lines.awk" "$stage/kernel.cu" >"$work/stage"
diff -w -u "$work/below" "$work/stage" >"$work/diff"
[ $? -le 1 ] || exit 1

new=$(sed 1,2d "$work/diff" | grep -c '^+')
gone=$(sed 1,2d "$work/diff" | grep -c '^-')
echo "${stage#*/} against ${below#*/}: $new new device lines, $gone gone"
[ -t 1 ] && colour=1 || colour=
awk -v text="$work/stage" -v map="$work/stage.map" -v colour=$colour -f "$here/diff.awk" "$work/diff"
