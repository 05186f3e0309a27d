#!/bin/sh
# Writes a stage's code with its source lines between, and says how many of which instructions each kernel has:
#
#   listing.sh ptx NN-name            build/listing/NN-name.ptx, from the PTX that nvcc made
#   listing.sh sass NN-name NVDISASM  build/listing/NN-name.sass, from the cubin that ptxas made of it
here=$(dirname "$0")
. "$here/need.sh"
kind=$1 name=$2 nvdisasm=$3
code=build/kernels/$name.ptx
listing=build/listing/$name.$kind
need_writable build/listing
if [ "$kind" = sass ]; then
  code=$listing.raw
  "$nvdisasm" -c -g "build/kernels/$name.cubin" >"$code" || exit 1
fi
awk -v listing="$listing" -f "$here/listing.awk" "build/kernels/$name.log" "$code" "$code" || exit 1
[ "$kind" = sass ] && rm "$code"
echo "$listing"
