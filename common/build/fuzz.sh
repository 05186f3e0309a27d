#!/bin/sh
# Runs one libFuzzer program for a while: fuzz.sh build/fuzz/NAME SECONDS
#
# It starts from the PTX of the tests, from the inputs kept in tests/fuzz/corpus_NAME, and from what it found before, in
# build/fuzz/NAME.corpus, and says little unless it
# finds something: then the input is kept in build/fuzz and the exit code is not 0.
fuzzer=$1 seconds=$2
name=$(basename "$fuzzer")
mkdir -p "$fuzzer.corpus"
dictionary=tests/fuzz/${name#fuzz_}.dict
[ -f "$dictionary" ] && dictionary=-dict=$dictionary || dictionary=
kept=tests/fuzz/corpus_${name#fuzz_}
[ -d "$kept" ] || kept=

echo "fuzzing $name for $seconds seconds"
"$fuzzer" $dictionary -max_total_time="$seconds" -timeout=25 -rss_limit_mb=4096 -print_final_stats=1 \
  -artifact_prefix="build/fuzz/$name-" "$fuzzer.corpus" $kept tests/ptx/valid tests/ptx/malformed build/ptx \
  >"$fuzzer.log" 2>&1
code=$?
if [ $code = 0 ]; then
  sed -n 's/^stat::number_of_executed_units: */  inputs tried: /p' "$fuzzer.log"
else
  tail -n 40 "$fuzzer.log"
fi
exit $code
