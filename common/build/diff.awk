# Makes a page of `diff -u`: awk -v text=KERNEL -v map=FILE -f diff.awk DIFF
#
# KERNEL is the new kernel, FILE the place of each of its lines (device_lines.awk). Each part begins with its place.
# Lines of both kernels are printed as they are in the new one, which may be indented differently. With `colour`, lines
# that are new or gone are in colour.
function paint(code, text) { return colour ? "\033[" code "m" text "\033[0m" : text }

BEGIN {
  for (lines = 1; (getline new[lines] <text) > 0; lines++) getline place[lines] <map
}
NR <= 2 { next }
/^@@/ {
  match($0, /\+[0-9]+/)
  line = substr($0, RSTART, RLENGTH) + 0
  print "\n" paint(1, place[line])
  next
}
/^-/ { print paint(31, $0); next }
/^\+/ { print paint(32, $0); line++; next }
{ print " " new[line++] }
