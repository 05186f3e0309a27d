# Sets rows of times beside those recorded before:
#
#   awk -v note=kept -f compare.awk RECORDED.csv ROWS.csv             a line for each row, which ends in the note
#   awk -v summary="1024 4096" -f compare.awk RECORDED.csv ROWS.csv   a table of one sequence length, and the whole
#
# Both files have the columns of the stages' --csv. The table shows seqlen 4096, or else the last of the list.
BEGIN { FS = "," }
FNR == 1 { next }
{ key = $1 FS $7 FS $8 FS $9 FS $10 FS $11 }
FILENAME == ARGV[1] { before[key] = $16; device = $2; next }
{ ratio = key in before ? $16 / before[key] : 0 }

!summary {
  printf "%-25s %6d %4d %7s %10.4f %6s  %4s  %s\n", $1, $9, $10, $11 ? "causal" : "full", $12, short($16),
         ratio ? short(before[key]) : "-", note
  next
}

!($1 in row_of) { row_of[$1] = ++rows; names[rows] = $1 }
{ cell[$1, $9, $10, $11] = short($16) (ratio ? " (" short(before[key]) ")" : "") }
ratio { compared++ }
ratio && (compared == 1 || ratio < least) { least = ratio; where = $1 ", S " $9 ", D " $10 ($11 ? ", causal" : "") }
ratio > most { most = ratio }

END {
  if (!summary) exit
  count = split(summary, seqlens, " ")
  seqlen = seqlens[count]
  for (i = 1; i <= count; i++)
    if (seqlens[i] == 4096) seqlen = 4096
  printf "\nTFLOPS at S = %d%s\n", seqlen, compared ? ", in brackets what was recorded on an " device : ""
  table("stage", "D 64", "D 64, causal", "D 128", "D 128, causal")
  for (r = 1; r <= rows; r++)
    table(names[r], cell[names[r], seqlen, 64, 0], cell[names[r], seqlen, 64, 1], cell[names[r], seqlen, 128, 0],
          cell[names[r], seqlen, 128, 1])
  if (compared)
    printf "\nof %d problems recorded before: %.2f (%s) to %.2f times those TFLOPS\n", compared, least, where, most
}

# Three digits: 9.57, 10.4, 324.
function short(x) { return sprintf(x < 9.995 ? "%.2f" : x < 99.95 ? "%.1f" : "%.0f", x) }

function table(name, a, b, c, d) { printf "%-25s %13s %13s %13s %13s\n", name, a, b, c, d }
