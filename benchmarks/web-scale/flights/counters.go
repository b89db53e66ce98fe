package main

import (
	"encoding/json"
	"math/bits"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"
)

const (
	precision = 5 // bits of a time that its bucket preserves: a thirty-second
	buckets   = (64 - precision) << precision
)

// Counters of one kind of request since the start of the process.
type counters struct {
	times  [buckets]atomic.Int64
	errors atomic.Int64
}

// bucketOf returns the bucket of a time: exact below 32 microseconds, and precise to a thirty-second above.
func bucketOf(microseconds uint64) int {
	shift := max(0, bits.Len64(microseconds)-precision-1)
	return shift<<precision + int(microseconds>>shift)
}

// largestOf returns the largest time of a bucket.
func largestOf(bucket int) uint64 {
	shift := max(0, bucket>>precision-1)
	return (uint64(bucket-shift<<precision)+1)<<shift - 1
}

func (c *counters) count(took time.Duration, status int) {
	if status >= http.StatusInternalServerError {
		c.errors.Add(1)
		return
	}
	c.times[bucketOf(uint64(max(0, took.Microseconds())))].Add(1)
}

func (c *counters) MarshalJSON() ([]byte, error) {
	times := map[string]int64{}
	for bucket := range c.times {
		if count := c.times[bucket].Load(); count > 0 {
			times[strconv.FormatUint(largestOf(bucket), 10)] = count
		}
	}
	return json.Marshal(map[string]any{"times": times, "errors": c.errors.Load()})
}

type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// counted counts all requests, and answers /counters itself.
func counted(name string, handler http.Handler) http.Handler {
	all := &counters{}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/counters" {
			answer(w, http.StatusOK, map[string]any{name: all})
			return
		}
		started, writer := time.Now(), &statusWriter{w, http.StatusOK}
		handler.ServeHTTP(writer, r)
		all.count(time.Since(started), writer.status)
	})
}

func answer(w http.ResponseWriter, status int, document any) {
	body, err := json.Marshal(document)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	w.Write(body)
}
