# After the checks of ranges, the first step of each document checks its programs. On AWS, it installs what is missing if
# it may.
missing=
for tool in TOOLS; do
    command -v "$tool" > /dev/null || missing="$missing $tool"
done
[ -z "$missing" ] && exit 0
echo "missing:$missing" >&2
[ "{{ InstallDependencies }}" = False ] || echo "local AWS installs nothing" >&2
exit 1
