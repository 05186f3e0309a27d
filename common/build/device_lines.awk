# Prints a kernel with the headers that stages have for it, each in the place of its first #include:
#
#   awk [-v map=FILE] -f device_lines.awk stages/NN-name/kernel.cu
#
# FILE gets a line "HEADER:NUMBER" for each line that is printed. Headers of common/ and of CUDA stay #include lines.
#
#   awk -v stamps=1 -f device_lines.awk stages/*/kernel.cu
#
# prints instead the names of the folders whose kernels have time stamps.

# The header that a line includes, as a path seen from the root; "" when it is no stage's header.
function included(line, folder, path, first) {
  if (line !~ /^#include "/) return ""
  split(line, path, "\"")
  path[2] = folder path[2]
  sub(/[^\/]+\/\.\.\//, "", path[2])
  if ((getline first <path[2]) < 0) return ""
  close(path[2])
  return path[2]
}

function print_file(path, folder, line, number, header) {
  folder = path
  sub(/[^\/]*$/, "", folder)
  while ((getline line <path) > 0) {
    number++
    header = included(line, folder)
    if (stamps) stamped = stamped || line ~ /trace_begin/
    if (!header) {
      if (!stamps) print line
      if (map) print path ":" number >map
    } else if (!printed[header]++) {
      print_file(header)
    }
  }
  close(path)
}

BEGIN {
  for (i = 1; i < ARGC; i++) {
    split("", printed)
    stamped = 0
    print_file(ARGV[i])
    split(ARGV[i], part, "/")
    if (stamped) print part[2]
  }
}
