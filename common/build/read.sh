#!/bin/sh
# Shows a lesson in the terminal: read.sh read|answers NN
#
# Comments, which are for the tests, are left out, and links to the glossary keep their words. What a picture shows
# stands in brackets. "read" also leaves out the answers; "answers" shows nothing else.
lesson=$(echo stages/"$2"-*/README.md)
fold="/^<details>/,/^<\/details>/"
case $1 in
read) shown="$fold{/^<details>/!d;c\\
make answers-$2 shows the answers.
}" ;;
answers) shown="$fold!d;/<\/\?details>/d" ;;
esac
[ -t 1 ] && pager=${PAGER:-$(command -v less)}
sed -e '/<!--.*-->/d' -e '/<!--/,/-->/d' "$lesson" | sed -e "$shown" |
  sed -z -e 's/!\[\([^]]*\)\]([^)]*)/[Picture: \1]/g' -e 's/\[\([^]]*\)\]([^)]*glossary\.md[^)]*)/\1/g' |
  cat -s | ${pager:-cat}
