#!/bin/sh
# Reads what AWS's documents of faults leave on an instance. Prints one line of JSON: the fields of
# troop.chaos.probe.Reading, and the token. null: it could not be read. It changes nothing, and starts at most six
# processes, also when thousands run. It has no here-documents, for which some shells write files: a disk may be full.
export LC_ALL=C PATH="$PATH:/usr/sbin:/usr/bin:/sbin:/bin"
token='{{Token}}'
process='{{Process}}'
lines='
'
missing=
lacks() { missing="$missing${missing:+,}\"$1\""; }
for program in bc curl dig fallocate iptables jq killall kmod lsof pgrep stress-ng tc; do
    command -v "$program" > /dev/null || lacks "$program"
done

boot='' release=''
{ read -r boot < /proc/sys/kernel/random/boot_id; read -r release < /proc/sys/kernel/osrelease; } 2> /dev/null

# Processes: "17 (name) S ...". The line of this shell shows that they can be read. A zombie no longer does anything.
found=$(grep -hsE "^$$ |^[0-9]+ \((atd|stress-ng[^)]*${process:+|$process})\) [^XZ]" /proc/[0-9]*/stat)
stress=0 running=0 atd=0 readable=no
set -f
IFS=$lines
for line in $found; do
    name=${line#*\(}
    name=${name%%\) *}
    if [ "${line%% *}" = $$ ]; then
        readable=yes
        continue
    fi
    case $name in
        stress-ng*) stress=$((stress + 1)) ;;
        atd) atd=$((atd + 1)) ;;
    esac
    if [ "$name" = "$process" ]; then running=$((running + 1)); fi
done
[ "$readable" = yes ] || stress=null running=null
[ -n "$process" ] || running=null
[ "$atd" -gt 0 ] || lacks atd

# AWS's documents use tc and iptables. Without the program, nothing of them is there.
qdiscs=0
if command -v tc > /dev/null; then
    if found=$(tc qdisc show 2> /dev/null); then
        for line in $found; do
            case $line in 'qdisc netem '* | 'qdisc ingress '* | 'qdisc prio '*) qdiscs=$((qdiscs + 1)) ;; esac
        done
    else
        qdiscs=null
    fi
fi

# A module of the running kernel that modprobe would load; or one that is part of it.
modules=/lib/modules/$release
exists() { [ -d "/sys/module/$1" ] || grep -qs "/$1\.ko" "$modules/modules.dep" "$modules/modules.builtin"; }
exists sch_netem || lacks sch_netem

# iptables would load its modules and make its tables to show that they are empty. Neither kind of table: no rule.
filters() {
    if [ -r /proc/net/ip_tables_names ]; then
        while read -r name; do [ "$name" != filter ] || return 0; done < /proc/net/ip_tables_names
    fi
    [ -d /sys/module/nf_tables ] || ! [ -e "$modules/modules.builtin" ] ||
        grep -qs '/nf_tables\.ko' "$modules/modules.builtin"
}
drops=0
if command -v iptables > /dev/null && filters; then
    if found=$(iptables -w 5 -S 2> /dev/null); then
        for line in $found; do
            case "$line " in '-A '*' -j DROP '*) drops=$((drops + 1)) ;; esac
        done
    else
        drops=null
    fi
fi
set +f

rollbacks=0
if [ -e /var/lib/amazon/ssm ] && ! [ -r /var/lib/amazon/ssm ]; then
    rollbacks=null
else
    for file in /var/lib/amazon/ssm/*.flag /var/lib/amazon/ssm/*-Rollback.sh; do
        if [ -e "$file" ] || [ -L "$file" ]; then rollbacks=$((rollbacks + 1)); fi
    done
fi

hosts=0
if [ -r /etc/hosts ]; then
    while read -r line || [ -n "$line" ]; do
        case $line in *'#delete-after-fault-injection'*) hosts=$((hosts + 1)) ;; esac
    done < /etc/hosts
elif [ -e /etc/hosts ]; then
    hosts=null
fi

# "/dev/xvda1 8310764 1602504 6708260 20% /"; as df counts, without the blocks that only root may use.
used=null
found=$(df -kP / 2> /dev/null)
IFS=' '
set -f
# shellcheck disable=SC2086 # the words of the last line
set -- ${found##*"$lines"}
if [ $# -ge 6 ] && [ "$(($3 + $4))" -gt 0 ]; then
    tenths=$(($3 * 1000 / ($3 + $4)))
    used=$((tenths / 10)).$((tenths % 10))
fi

printf '{"token":"%s","boot":"%s","qdiscs":%s,"drops":%s,"stress":%s,"rollbacks":%s,"hosts":%s,"used":%s,' \
    "$token" "$boot" "$qdiscs" "$drops" "$stress" "$rollbacks" "$hosts" "$used"
printf '"running":%s,"missing":[%s]}\n' "$running" "$missing"
