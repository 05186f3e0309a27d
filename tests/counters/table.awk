# Joins what `ncu --csv --page raw` printed (a header, a row of units, a row a launch, every field in quotes) for several
# sets of launches into one table:
#
#   awk -f table.awk CASES SET.cases SET.raw ANOTHER.cases ANOTHER.raw ...
#
# CASES and the sets are lists of name,kernel. One row a case of CASES; a column each for the counters that are not zero in
# every case; a cell is empty where the case's sets do not have the counter.

FNR == 1 {
  if (file > 1 && file % 2 == 1) end_of_set()
  file++
  if (file % 2 == 0) expected = 0
  rows = columns = 0
}

{ comma = index($0, ",") }

file == 1 {
  name[++cases] = substr($0, 1, comma - 1)
  next
}

file % 2 == 0 {
  set_name[++expected] = substr($0, 1, comma - 1)
  set_kernel[expected] = substr($0, comma + 1)
  next
}

# Lines that are no table: what ncu says of its progress.
!/^"/ { next }

{ count = split(substr($0, 2, length($0) - 2), field, "\",\"") }

!columns {
  for (i = 1; i <= count; i++) {
    if (field[i] == "Kernel Name") kernel_field = i
    if (field[i] !~ /^(l1tex|lts|smsp|sm)__.*\.sum$/) continue
    place[++columns] = i
    metric[columns] = field[i]
    if (!(field[i] in known)) {
      known[field[i]] = 1
      all[++metrics] = field[i]
    }
  }
  next
}

field[1] !~ /^[0-9]+$/ { next }

{
  rows++
  if (field[kernel_field] !~ "^" set_kernel[rows] "([^a-z0-9_]|$)")
    fail("launch " rows " of " FILENAME " is " field[kernel_field] ", expected " set_kernel[rows])
  for (c = 1; c <= columns; c++) {
    gsub(",", "", field[place[c]])
    value[set_name[rows], metric[c]] = field[place[c]]
    if (field[place[c]] + 0 != 0) used[metric[c]] = 1
  }
}

function fail(why) {
  print "table.awk: " why >"/dev/stderr"
  failed = 1
  exit 1
}

function end_of_set() {
  if (rows != expected || !columns) fail(rows " launches recorded of " expected ", " columns " counters")
}

END {
  if (failed) exit 1
  end_of_set()
  if (failed) exit 1
  line = "case"
  for (m = 1; m <= metrics; m++) if (all[m] in used) line = line "," all[m]
  print line
  for (c = 1; c <= cases; c++) {
    line = name[c]
    for (m = 1; m <= metrics; m++) if (all[m] in used) line = line "," value[name[c], all[m]]
    print line
  }
}
