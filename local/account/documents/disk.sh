# Fills the root volume with a file that has no name: the space is free again when this shell and its sleep have ended.
set -- $(df -kP / | tail -n 1)
want=$(($2 * {{ Percent }} / 100 - $3))
[ "$want" -gt 0 ] || { echo "the root volume is already as full" >&2; exit 1; }
file=$(mktemp /.aws-fis.XXXXXX) && exec 3<> "$file" && rm "$file" || exit 1
fallocate -l "${want}K" /proc/self/fd/3 || exit 1
sleep {{ DurationSeconds }}
