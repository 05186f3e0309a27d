# Makes the paths of source files in PTX relative to the folder that nvcc ran in, without detours by way of "..":
#
#   awk -f relative.awk SOURCE KERNEL.ptx KERNEL.ptx
#
# SOURCE is the file that was compiled, relative to that folder. An entry of a file beside it, or of a header that is
# included from there, .file 1 "/folder/stages/11-fp8/../09b-diagonal/loads.h", shows the folder as nvcc writes it, with
# letters outside of ASCII and backslashes escaped. SOURCE itself need not have one: 11-fp8/kernel.cu has no code.
BEGIN {
  beside = "/" ARGV[1]
  sub(/[^\/]*$/, "", beside)
  ARGV[1] = ""
}
FNR == 1 { pass++ }
/^\t\.file\t/ {
  quote = index($0, "\"")
  path = substr($0, quote + 1)
  end = index(path, beside)
  if (pass == 1 && end && folder == "") folder = substr(path, 1, end)
  if (pass == 2 && folder != "" && index(path, folder) == 1) {
    path = substr(path, length(folder) + 1)
    while (sub(/[^\/]+\/\.\.\//, "", path)) {}
    $0 = substr($0, 1, quote) path
  }
}
pass == 2
