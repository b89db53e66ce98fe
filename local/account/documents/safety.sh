# The mechanism that AWS documents as "Rollback scripts": a rollback script exists before the fault. While the fault lasts,
# this shell touches a flag, and has atd look at it 20 s later: if nobody has touched it for 10 s, the script undoes the
# fault. The shell may be killed at any moment, without a trap. Before this text, a document sets name, inject() and undo.
state=/var/lib/amazon/ssm
mark='#delete-after-fault-injection'
if ls "$state"/AWSFIS-Run-Network-*.flag > /dev/null 2>&1; then
    echo "another network fault may be running" >&2
    exit 1
fi
id=$(od -An -N8 -tx1 /dev/urandom | tr -d ' \n')
flag=$state/$name-$id.flag
rollback=$state/$name-$id-Rollback.sh
cat > "$rollback" << END
$undo 2> /dev/null # a look may have undone it already: AWS's texts allow for that, too
hosts=\$(grep -v "$mark" /etc/hosts)
printf '%s\\n' "\$hosts" > /etc/hosts
rm -f "$flag" "$rollback"
END
look="sleep 20; age=\$((\$(date +%s) - \$(stat -c %Y $flag || echo 0))); [ \$age -le 10 ] || sh $rollback"
again() { touch "$flag" && echo "$look" | at now; }
at_last() {
    sh "$rollback"
    exit
}
trap at_last INT TERM
again || { rm -f "$flag" "$rollback"; exit 1; }
echo "127.0.0.1 ssm.local $mark" >> /etc/hosts # the agent must find its endpoint, whatever happens to names
if ! inject; then
    echo "the fault cannot be injected" >&2
    sh "$rollback"
    exit 1
fi
until=$(($(date +%s) + {{ DurationSeconds }}))
while left=$((until - $(date +%s))) && [ "$left" -gt 0 ]; do
    again
    [ "$left" -lt 5 ] || left=5
    sleep "$left" &
    wait $!
done
at_last
