# Drops the packets of one port.
name=AWSFIS-Run-Network-Blackhole-Port
case {{ TrafficType }} in
    ingress) rule="INPUT -p {{ Protocol }} --dport {{ Port }} -j DROP" ;;
    *) rule="OUTPUT -p {{ Protocol }} --dport {{ Port }} -j DROP" ;;
esac
inject() { iptables -w -I $rule; }
undo="iptables -w -D $rule"
