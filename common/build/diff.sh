#!/bin/sh
# Shows a stage's kernel beside that of the stage below it: diff.sh NN
#
# The lower stage is on the left. As wide as the terminal, or 200 columns; longer lines are cut.
stage=$(ls -d stages/"$1"-*) || exit 1
below=
for each in stages/[0-9][0-9]*-*; do
  [ "$each" = "$stage" ] && break
  below=$each
done
[ "$below" ] || { echo "diff-$1: $(basename "$stage") is the lowest stage; there is none below it" >&2; exit 2; }
width=200
[ -t 1 ] && width=$(tput cols 2>/dev/null || echo 200)
printf "%-$((width / 2))s %s\n\n" "$below/kernel.cu" "$stage/kernel.cu"
diff --side-by-side --expand-tabs --width="$width" "$below/kernel.cu" "$stage/kernel.cu"
[ $? -le 1 ]
