name=AWSFIS-Run-Network-Packet-Loss-Sources
netem="loss {{ LossPercent }}%"
