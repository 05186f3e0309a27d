# rooms.sh OBJECT...: fails when a file of common/emulator includes or calls one in a higher room, or when any of the
# objects call each other in a circle. The order of the rooms is that of the table in notes/emulator.md, lowest first.
rooms=$(sed -n 's/^| `\([a-z]*\)\/` |.*/\1/p' notes/emulator.md | tr '\n' ' ')
listed=$(echo $rooms emulator.h Makefile | tr ' ' '\n' | LC_ALL=C sort | tr '\n' ' ')
found=$(ls common/emulator | grep -vx build | LC_ALL=C sort | tr '\n' ' ')
if [ "$listed" != "$found" ]; then
  echo "common/emulator has $found; notes/emulator.md has the rooms $rooms" >&2
  exit 1
fi

# Lines "FILE USED WHAT". A file is ROOM/NAME without its ending.
includes() {
  (cd common/emulator && grep '^#include "\.\./[a-z]*/' */*.[ch]) |
    sed 's|\.[ch]:#include "\.\./| |; s|\.h"|.h|; s|\(.*\) \(.*\)\.h|\1 \2 includes|'
}
calls() {
  nm -A -g "$@" | awk '
    { file = $1; sub(/:.*/, "", file); sub(/.*common\/(emulator\/)?/, "", file); sub(/\.o$/, "", file) }
    $(NF - 1) == "U" { used[file, $NF] = 1; next }
    { home[$NF] = file }
    END {
      for (pair in used) {
        split(pair, part, SUBSEP)
        if (part[2] in home && home[part[2]] != part[1]) print part[1], home[part[2]], part[2]
      }
    }'
}

nm "$@" >/dev/null || exit 1
{ includes; calls "$@"; } | sort | awk -v rooms="$rooms" '
  BEGIN { for (count = split(rooms, name, " "); count; count--) level[name[count]] = count }
  {
    split($1, user, "/"); split($2, home, "/")
    if (user[1] in level && level[user[1]] < level[home[1]]) { print $1 " reaches up to " $2 ": " $3; bad = 1 }
  }
  END { exit bad }' >&2 || exit 1
circle=$(calls "$@" | cut -d' ' -f1,2 | tsort 2>&1 >/dev/null | sed 's/^tsort: //')
[ -z "$circle" ] || { echo "these files call each other in a circle: $circle" >&2; exit 1; }
