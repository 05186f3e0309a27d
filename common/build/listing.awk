# Puts source lines between the instructions of a listing, PTX or SASS, and counts the instructions of each kernel:
#
#   awk -v listing=FILE -f listing.awk PTXAS.log CODE CODE
#
# The code is read twice, because PTX numbers its files at its end. Where the code of another source line begins,
#
#   PTX has   .loc 1 282 3, ...                              and   .file 1 "stages/03-cp-async/kernel.cu"
#   SASS has  //## File "stages/03-cp-async/kernel.cu", line 282

FNR == 1 { pass++ }

# ---- what ptxas said: registers and spills ----

pass == 1 && /Compiling entry function/ { split($0, quoted, "'"); kernel = quoted[2] }
pass == 1 && /bytes stack frame/ { spills[kernel] = $5 + $9 }
pass == 1 && /Used [0-9]+ registers/ {
  match($0, /Used [0-9]+/)
  registers[kernel] = substr($0, RSTART + 5, RLENGTH - 5)
}
pass == 1 { next }

# ---- PTX's numbers of files ----

pass == 2 && $1 == ".file" { path = $3; gsub(/"/, "", path); file[$2] = path }
pass == 2 { next }

# ---- the listing ----

# Prints a source line as a comment, unless it is the one before.
function show(path, line, place) {
  place = path ":" line
  if (place == shown) return
  shown = place
  if (!(path in length_of)) {
    while ((getline text[path, ++length_of[path]] <path) > 0) continue
    close(path)
  }
  sub(/.*\//, "", place)
  printf "// %-16s %s\n", place, text[path, line] >listing
}

# Nothing but debug information follows PTX's first section.
$1 == ".section" && !/text/ { exit }
$1 == ".loc" { show(file[$2], $3); next }
$1 == "//##" { path = $3; gsub(/[",]/, "", path); show(path, $5); next }
$1 == ".file" { next }

{ print >listing }

# ---- counts ----

/^[.]visible [.]entry / { kernel = $3; sub(/[(].*/, "", kernel); kernels[++count] = kernel }
/^[.]text[.]/ { kernel = substr($1, 7); sub(/:/, "", kernel); kernels[++count] = kernel }

# An instruction's name; of PTX's families with members that differ much, two parts: cp.async, wgmma.fence.
function operation_of(word) {
  if (word ~ /^(bar|barrier|cp|fence|mbarrier|wgmma)[.]/) match(word, /^[a-z]+[.][a-z0-9_]+/)
  else match(word, /^[A-Za-z][A-Za-z0-9_]*/)
  return substr(word, 1, RLENGTH)
}

# PTX: "@%p1 bra label;", or on several lines up to the ";"    SASS: "/*0120*/ @!P1 CS2R.32 R5, SR_CLOCKLO ;"
kernel == "" || NF == 0 || /^[ \t]*\/\// { next }
!continued {
  word = $1 ~ /^\/[*]/ || $1 == "{" ? 2 : 1
  if ($word ~ /^@/) word++
  operation = $word ~ /:$/ ? "" : operation_of($word)
  if (operation != "") {
    uses[kernel, operation]++
    total[kernel]++
  }
}
{ continued = $0 !~ /[;:{})][ \t]*$/ }

# Tensor cores, copies, barriers, exponentials and spills are told first, whatever their number.
function weight(key, part) {
  split(key, part, SUBSEP)
  if (part[2] ~ /^(wgmma|mma|wmma|ldmatrix|cp[.]|bar|mbarrier|ex2)/) return uses[key] + 1000000
  if (part[2] ~ /^(HMMA|HGMMA|LDSM|LDGSTS|UTMA|UBLKCP|BAR|SYNCS|MUFU|LDL|STL)/) return uses[key] + 1000000
  return uses[key]
}

# Takes the weightiest operation of a kernel that was not told yet: "128 HMMA"; "" when none is left.
function take(kernel, key, most, part) {
  most = ""
  for (key in uses) {
    split(key, part, SUBSEP)
    if (part[1] != kernel) continue
    if (most == "" || weight(key) > weight(most) || (weight(key) == weight(most) && key < most)) most = key
  }
  if (most == "") return ""
  split(most, part, SUBSEP)
  key = uses[most] " " part[2]
  delete uses[most]
  return key
}

END {
  if (pass < 3) exit 1
  for (k = 1; k <= count; k++) {
    kernel = kernels[k]
    printf "%s: %d registers a thread, %d bytes spilled; %d instructions:", kernel, registers[kernel], spills[kernel],
      total[kernel]
    for (n = 0; n < 12 && (next_one = take(kernel)) != ""; n++) printf "%s %s", n ? "," : "", next_one
    print ""
  }
}
