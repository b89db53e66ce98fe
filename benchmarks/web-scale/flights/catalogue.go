package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
)

// Airports of the network. Each has flights to all others on each day.
var airports = []string{
	"AMS", "ATL", "BKK", "BOS", "CAI", "CDG", "DEL", "DFW", "DXB", "FCO", "FRA", "GRU", "HKG", "ICN", "IST",
	"JFK", "JNB", "LAX", "LHR", "MAD", "MEX", "NBO", "NRT", "ORD", "PEK", "SFO", "SIN", "SYD", "YYZ", "ZRH",
}

const flightsPerDay = 4

// A flight of one day.
type flight struct {
	ID       string `json:"id"`
	From     string `json:"from"`
	To       string `json:"to"`
	Day      int    `json:"day"`
	Departs  string `json:"departs"`
	Arrives  string `json:"arrives"`
	Aircraft string `json:"aircraft"`
	Economy  int    `json:"economy_usd"`
	Business int    `json:"business_usd"`
}

func flightsKey(from, to string, day int) string { return fmt.Sprintf("f:%s-%s-%d", from, to, day) }
func customerKey(user string) string             { return "c:" + user }
func sessionKey(token string) string             { return "s:" + token }
func bookingsKey(user string) string             { return "b:" + user }

func flightsOf(from, to string, day int) []flight {
	hash := sha256.Sum256([]byte(flightsKey(from, to, day)))
	result := make([]flight, flightsPerDay)
	for n := range result {
		departs, hours := 6+n*4+int(hash[n])%4, 1+int(hash[n+8])%12
		result[n] = flight{
			ID: fmt.Sprintf("%s-%s-%d-%d", from, to, day, n), From: from, To: to, Day: day,
			Departs: fmt.Sprintf("%02d:%02d", departs, hash[n+16]%60), Arrives: fmt.Sprintf("%02d:%02d", (departs+hours)%24, hash[n+20]%60),
			Aircraft: []string{"A320", "A350", "B737", "B787"}[hash[n+24]%4], Economy: 80 + 40*hours, Business: 300 + 160*hours,
		}
	}
	return result
}

// A customer can log in. This data is invented, so one round of SHA-256 is enough; it is no way to store passwords.
type customer struct {
	User     string `json:"user"`
	Password string `json:"password_sha256"`
	Miles    int    `json:"miles"`
}

func userOf(n int) string { return fmt.Sprintf("user%d", n) }

func passwordOf(user string) string { return "password-of-" + user }

func digest(user, password string) string {
	sum := sha256.Sum256([]byte(user + ":" + password))
	return hex.EncodeToString(sum[:])
}

// fill writes this process's share of flights and customers. It returns the number of values.
func fill(s *store, rank, processes, days, customers int) (int, error) {
	type entry struct {
		key  string
		body any
	}
	entries := make(chan entry, 256)
	var group sync.WaitGroup
	var count atomic.Int64
	var first atomic.Pointer[error]
	for range 16 {
		group.Go(func() {
			for one := range entries {
				body, err := json.Marshal(one.body)
				if err == nil {
					err = s.set(one.key, body, 0)
				}
				if err != nil {
					first.CompareAndSwap(nil, &err)
					continue
				}
				count.Add(1)
			}
		})
	}
	number := 0
	mine := func() bool { number++; return number%processes == rank }
	for _, from := range airports {
		for _, to := range airports {
			for day := 1; from != to && day <= days; day++ {
				if mine() {
					entries <- entry{flightsKey(from, to, day), flightsOf(from, to, day)}
				}
			}
		}
	}
	for n := range customers {
		if user := userOf(n); mine() {
			entries <- entry{customerKey(user), customer{user, digest(user, passwordOf(user)), 0}}
		}
	}
	close(entries)
	group.Wait()
	if err := first.Load(); err != nil {
		return int(count.Load()), *err
	}
	return int(count.Load()), nil
}
