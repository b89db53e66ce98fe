name=AWSFIS-Run-Network-Latency-Sources
netem="delay {{ DelayMilliseconds }}ms {{ JitterMilliseconds }}ms"
