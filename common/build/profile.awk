# Makes a CSV, one row a number, and a table, one column a kernel, of what Nsight Compute printed (profile.sh):
#
#   awk -v program= -v ncu= -v date= -v csv=FILE -f profile.awk metrics.txt A.report A.raw B.report B.raw ...
#
# A report says which problem the raw table behind it is of. A raw table (--csv --page raw) has a header, a row of
# units, and a row for each launch, every field in quotes. Problems named small-* are in the CSV alone.

BEGIN {
  MOST = 6  # columns that fit side by side
  FS = " *[|] *"
  print "program,kernel,batch,heads,seqlen,head_dim,causal,metric,value,unit,device,driver,ncu,ncu_options,date" >csv
}

FNR == 1 { file = FILENAME }

# ---- metrics.txt ----

file ~ /metrics[.]txt$/ {
  if (/^#/ || NF < 4) next
  metric[++metrics] = $1
  name[$1] = $2
  form[$1] = $3
  meaning[$1] = $4
  next
}

# ---- a report: "problem   batch 1, heads 2, seqlen 128, head dim 64, not causal; input normal, seed 1" ----

# The word or number behind a name in the report's line.
function after(text, what) {
  if (!match(text, what)) return ""
  text = substr(text, RSTART + RLENGTH)
  sub(/[,;)].*/, "", text)
  return text
}

file ~ /[.]report$/ && /^device / {
  device = $0
  sub(/^device +/, "", device)
  sub(/ [(].*/, "", device)
  driver = after($0, "driver ")
}
file ~ /[.]report$/ && /^problem / {
  # A stage that is not an attention kernel has none of these.
  batch = after($0, "batch ")
  heads = after($0, "heads ")
  seqlen = after($0, "seqlen ")
  head_dim = after($0, "head dim ")
  causal = /causal/ ? !/not causal/ : ""
  header = 0
}
file ~ /[.]report$/ { next }

# ---- a raw table ----

!/^"/ { next }

{ fields = split(substr($0, 2, length($0) - 2), field, "\",\"") }

!header {
  header = 1
  for (i = 1; i <= fields; i++) column[i] = field[i]
  next
}

field[1] == "" {
  for (i = 1; i <= fields; i++) unit[column[i]] = field[i]
  next
}

{
  for (i = 1; i <= fields; i++) value[column[i]] = field[i]
  kernel = value["Kernel Name"]
  sub(/[(].*/, "", kernel)
  shown = file !~ /small-/ && columns < MOST
  if (file !~ /small-/ && !shown) left_out++
  if (shown) {
    heading[++columns] = kernel
    problem[columns] = batch == "" ? "" : "B=" batch " H=" heads " S=" seqlen " D=" head_dim (causal ? " causal" : "")
  }
  for (m = 1; m <= metrics; m++) {
    if (!(metric[m] in value)) continue
    number = value[metric[m]]
    gsub(",", "", number)
    if (number !~ /^-?[0-9]/) continue
    printf "%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,--clock-control none,%s\n", program, kernel, batch, heads, seqlen,
      head_dim, causal, metric[m], number, unit[metric[m]], device, driver, ncu, date >csv
    if (!shown) continue
    cell[m, columns] = number
    if (form[metric[m]] == "stall") stalls[columns] += number
  }
}

# ---- the table ----

# 1234567.8 as "1,234,568"; bytes and microseconds likewise.
function with_commas(number, text) {
  text = sprintf("%.0f", number)
  while (text ~ /[0-9][0-9][0-9][0-9]/) text = gensub_first(text)
  return text
}
function gensub_first(text) {
  match(text, /[0-9][0-9][0-9][0-9](,|$)/)
  return substr(text, 1, RSTART) "," substr(text, RSTART + 1)
}

function cell_text(m, c, number) {
  if (!((m, c) in cell)) return "-"
  number = cell[m, c]
  if (form[metric[m]] == "us") return sprintf("%.1f", number / 1000)
  if (form[metric[m]] == "%") return sprintf("%.1f %%", number)
  if (form[metric[m]] == "stall") return sprintf("%.1f %%", stalls[c] ? 100 * number / stalls[c] : 0)
  return with_commas(number)
}

# Reasons to stall are shown where one is 3 % of some kernel's time.
function matters(m, c) {
  if (form[metric[m]] != "stall") return 1
  for (c = 1; c <= columns; c++) if ((m, c) in cell && stalls[c] && cell[m, c] >= 0.03 * stalls[c]) return 1
  return 0
}

function table_row(title, note, c, line) {
  line = sprintf("%-28s", title)
  for (c = 1; c <= columns; c++) line = line sprintf(" %*s", width, text[c])
  print line (note ? "  " note : "")
}

END {
  if (!columns) {
    print "profile.awk: Nsight Compute has told of no launch" >"/dev/stderr"
    exit 1
  }
  print program " on " device
  for (c = 1; c <= columns; c++) {
    text[c] = heading[c]
    if (length(problem[c]) > width) width = length(problem[c])
    if (length(heading[c]) > width) width = length(heading[c])
  }
  table_row("", "")
  for (c = 1; c <= columns; c++) text[c] = problem[c]
  if (problem[1] != "") table_row("", "")
  for (m = 1; m <= metrics; m++) {
    if (!matters(m)) continue
    if (form[metric[m]] == "stall" && !warps++) print "of a warp's time:"
    for (c = 1; c <= columns; c++) text[c] = cell_text(m, c)
    table_row(name[metric[m]], meaning[metric[m]])
  }
  if (left_out) print "and " left_out " more kernels, which the CSV has"
}
