# Disturbs the packets from or to the sources: those of a band of their own, or of an interface for what comes in.
interface={{ Interface }}
[ "$interface" != DEFAULT ] || interface=$(ip -o -4 route show default | sed 's/.* dev \([^ ]*\).*/\1/;q')
[ -n "$interface" ] || interface=$(ip -o -4 address show scope global | awk '{ print $2; exit }')
[ -e "/sys/class/net/$interface" ] || { echo "local AWS has no interface $interface" >&2; exit 1; }
[ {{ FlowsPercent }} = 100 ] || { echo "local AWS disturbs all flows or none" >&2; exit 1; }

networks=
for source in $(echo "{{ Sources }}" | tr , ' '); do
    case $source in
        ALL) found=0.0.0.0/0 ;;
        S3 | DYNAMODB) echo "local AWS has no addresses of $source" >&2; exit 1 ;;
        *[!0-9./]*)
            found=$(getent ahostsv4 "$source" | cut -d' ' -f1 | sort -u)
            [ -n "$found" ] || { echo "$source has no IPv4 address; local AWS knows no zones" >&2; exit 1; }
            ;;
        *) found=$source ;;
    esac
    networks="$networks $found"
done

case {{ TrafficType }} in
    egress)
        inject() {
            tc qdisc add dev "$interface" root handle 1: prio bands 4 &&
                tc qdisc add dev "$interface" parent 1:4 handle 40: netem $netem || return 1
            for network in $networks; do
                tc filter add dev "$interface" parent 1: protocol ip prio 1 u32 match ip dst "$network" flowid 1:4 ||
                    return 1
            done
        }
        undo="tc qdisc del dev $interface root"
        ;;
    *)
        inject() {
            ip link add aws-fis type ifb && ip link set aws-fis up &&
                tc qdisc add dev aws-fis root netem $netem &&
                tc qdisc add dev "$interface" handle ffff: ingress || return 1
            for network in $networks; do
                tc filter add dev "$interface" parent ffff: protocol ip prio 1 u32 match ip src "$network" \
                    action mirred egress redirect dev aws-fis || return 1
            done
        }
        undo="tc qdisc del dev $interface ingress; ip link del aws-fis"
        ;;
esac
