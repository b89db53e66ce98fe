module data-service

go 1.25

require (
	github.com/HdrHistogram/hdrhistogram-go v1.4.0
	github.com/apache/cassandra-gocql-driver/v2 v2.1.2
	github.com/bradfitz/gomemcache v0.0.0-20260422231931-4d751bb6e37c
)

require gopkg.in/inf.v0 v0.9.1 // indirect
