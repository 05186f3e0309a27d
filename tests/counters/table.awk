# Joins the list of cases (name,kernel) with what `ncu --csv --page raw` printed (a header, a row of units, a row a launch,
# every field in quotes): one row a case; a column each for the counters that are not zero in every case.

BEGIN { cases = 0; rows = 0; columns = 0 }

FILENAME == ARGV[1] {
  comma = index($0, ",")
  name[++cases] = substr($0, 1, comma - 1)
  kernel[cases] = substr($0, comma + 1)
  next
}

# Lines that are no table: what ncu says of its progress.
!/^"/ { next }

{ count = split(substr($0, 2, length($0) - 2), field, "\",\"") }

!columns {
  for (i = 1; i <= count; i++) {
    if (field[i] == "Kernel Name") kernel_field = i
    if (field[i] ~ /^(l1tex|smsp|sm)__.*\.sum$/) { place[++columns] = i; metric[columns] = field[i] }
  }
  next
}

field[1] !~ /^[0-9]+$/ { next }

{
  rows++
  if (field[kernel_field] !~ "^" kernel[rows] "([^a-z0-9_]|$)") {
    print "table.awk: launch " rows " is " field[kernel_field] ", expected " kernel[rows] >"/dev/stderr"
    failed = 1
    exit 1
  }
  for (c = 1; c <= columns; c++) {
    gsub(",", "", field[place[c]])
    value[rows, c] = field[place[c]]
    if (value[rows, c] + 0 != 0) used[c] = 1
  }
}

END {
  if (failed) exit 1
  if (rows != cases || !columns) {
    print "table.awk: " rows " launches recorded of " cases ", " columns " counters" >"/dev/stderr"
    exit 1
  }
  line = "case"
  for (c = 1; c <= columns; c++) if (used[c]) line = line "," metric[c]
  print line
  for (r = 1; r <= rows; r++) {
    line = name[r]
    for (c = 1; c <= columns; c++) if (used[c]) line = line "," value[r, c]
    print line
  }
}
