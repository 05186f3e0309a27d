# Sourced by the scripts that people watch.

# What is being done, on a terminal alone, in a line that the next one replaces.
progress() { [ ! -t 2 ] || printf '\r\033[K%s' "$1" >&2; }
