#!/bin/sh
# What a stand-in exports, all that the real library does:
#
#   exports.sh NAMES RELEASE SONAME MISSING OUT OBJECT...
#
# NAMES lists functions; a line without a blank in front says of which releases. OUT.map becomes the linker's version
# script, OUT.c a function for each name that no OBJECT defines: it calls MISSING with its name.
names=$1 release=$2 soname=$3 missing=$4 out=$5
shift 5
mkdir -p "$(dirname "$out")"
nm --defined-only "$@" | awk 'NF == 3 { print $3 }' >"$out.defined"
awk -v release="$release" -v missing="$missing" -v soname="$soname" -v map="$out.map" '
  FNR == NR { defined[$1] = 1; next }
  /^[^ ]/ { wanted = (" " $0 " ") ~ (" " release " "); next }
  !wanted { next }
  FNR > 0 && !begun { begun = 1
    print "// Written by exports.sh: what the real library has, and this one not."
    printf "int %s(const char *function);\n", missing
    printf "%s{ global:\n", soname == "-" ? "" : soname " " >map }
  { for (i = 1; i <= NF; i++) {
      print "  " $i ";" >map
      if (!($i in defined)) printf "int %s(void);\nint %s(void) { return %s(\"%s\"); }\n", $i, $i, missing, $i } }
  END { if (soname == "-") print "  core_*; nvrtcGetCUBIN*; nvrtcCompileProgram; nvJitLink*; hopper_run_*; dlsym;" >map
    print "local: *; };" >map }' "$out.defined" "$names" >"$out.c"
