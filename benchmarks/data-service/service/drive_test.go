package main

import (
	"bytes"
	"context"
	"math"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

func TestValuesFollowFromKeyAndSeed(t *testing.T) {
	value := Value(Key(7), 100, 1)
	expect(t, "the length", len(value), 100)
	expect(t, "whether the value is the same", bytes.Equal(value, Value(Key(7), 100, 1)), true)
	expect(t, "whether another seed has the same value", bytes.Equal(value, Value(Key(7), 100, 2)), false)
	expect(t, "whether it belongs to its key", belongs(Key(7), value), true)
	expect(t, "whether it belongs to another key", belongs(Key(8), value), false)
}

func TestADigestDependsOnItemsAndNotOnTheirOrder(t *testing.T) {
	sum := func(items ...string) uint64 {
		var digest Digest
		for n := 0; n < len(items); n += 2 {
			digest.add(items[n], []byte(items[n+1]))
		}
		return digest.sum.Load()
	}
	expect(t, "the digest in another order", sum("a", "1", "b", "2"), sum("b", "2", "a", "1"))
	for _, other := range []uint64{sum("a", "1"), sum("a", "2", "b", "1"), sum("a", "1", "b", "2", "b", "2")} {
		expect(t, "whether other items have the same digest", sum("a", "1", "b", "2") == other, false)
	}
}

func TestLinesOfADataSetAreItems(t *testing.T) {
	items := make(chan Item, 10)
	expect(t, "the error", lines(context.Background(), strings.NewReader("a\t1\nb\t\n"), items), nil)
	expect(t, "the number of items", len(items), 2)
	first := <-items
	expect(t, "the first item", first.key+"="+string(first.value), "a=1")
	if err := lines(context.Background(), strings.NewReader("a\t1\nb\n"), items); err == nil ||
		!strings.Contains(err.Error(), "line 2") {
		t.Errorf("a line without a tab gives %v", err)
	}
}

func TestRangesCoverTheRingOnce(t *testing.T) {
	for _, count := range []int{1, 2, 7, 4096} {
		limits := bounds(count)
		expect(t, "the first bound", limits[0], int64(math.MinInt64))
		expect(t, "the last bound", limits[count], int64(math.MaxInt64))
		for n := range count {
			if limits[n] >= limits[n+1] {
				t.Fatalf("range %d of %d is from %d to %d", n, count, limits[n], limits[n+1])
			}
		}
	}
}

func TestLowNumbersArePreferredAsTheSkewSays(t *testing.T) {
	const draws = 100_000
	for skew, share := range map[float64]float64{1: 0.01, 4: math.Pow(0.01, 0.25)} {
		numbers, low := Numbers(1), 0
		for range draws {
			number := chosen(&numbers, 1_000_000, skew)
			if number < 0 || number >= 1_000_000 {
				t.Fatalf("item %d does not exist", number)
			}
			if number < 10_000 {
				low++
			}
		}
		if part := float64(low) / draws; math.Abs(part-share) > 0.01 {
			t.Errorf("with skew %g, the first hundredth receives %g instead of %g", skew, part, share)
		}
	}
}

func TestAPartOfTheOperationsReads(t *testing.T) {
	load, reads := Load{items: 10, skew: 1, reads: 0.9, seed: 3}, 0
	for n := range int64(10_000) {
		if load.request(n).operation == read {
			reads++
		}
	}
	if reads < 8_900 || reads > 9_100 {
		t.Errorf("%d of 10,000 operations read", reads)
	}
}

// driven sends a load to a handler for a second after half a second of warm-up.
func driven(t *testing.T, load Load, handler http.HandlerFunc) (map[string]*hdr.Histogram, Summary) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	load.targets = []string{strings.TrimPrefix(server.URL, "http://")}
	load.items, load.skew, load.valueBytes, load.seed = 10, 1, 100, 1
	begin := time.Now()
	from := begin.Add(500 * time.Millisecond)
	var log bytes.Buffer
	recording := newRecording(&log, from, from.Add(time.Second), load.rate > 0)
	summary, err := drive(context.Background(), &load, begin, recording)
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]*hdr.Histogram{}
	for line := range strings.Lines(log.String()) {
		columns := strings.Split(strings.TrimSpace(line), ",") // tag, start, length, maximum, histogram
		start, _ := strconv.ParseFloat(columns[1], 64)
		if int64(start*1000+0.5) < from.UnixMilli() {
			continue
		}
		interval, err := hdr.Decode([]byte(columns[4]))
		if err != nil {
			t.Fatal(err)
		}
		sums[strings.TrimPrefix(columns[0], "Tag=")] = interval
	}
	return sums, summary
}

func echo(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		_, _ = w.Write(Value(strings.TrimPrefix(r.URL.Path, "/items/"), 100, 1))
	}
}

func failures(summary Summary) map[string]int64 {
	counts := map[string]int64{}
	for _, one := range summary.Failures {
		counts[one.Operation+" "+one.Kind] += one.Count
	}
	return counts
}

func TestAStallIsInTheResponseTimesOfAllOperationsThatWereDueMeanwhile(t *testing.T) {
	var stalled atomic.Bool
	begin := time.Now()
	sums, _ := driven(t, Load{rate: 200, workers: 1, reads: 1, timeout: time.Minute},
		func(w http.ResponseWriter, r *http.Request) {
			if time.Since(begin) > 700*time.Millisecond && stalled.CompareAndSwap(false, true) {
				time.Sleep(400 * time.Millisecond)
			}
			echo(w, r)
		})
	responses, services := sums["read-rt"], sums["read-st"]
	slow := func(times *hdr.Histogram) (count int64) {
		for _, bar := range times.Distribution() {
			if bar.From > int64(100*time.Millisecond) {
				count += bar.Count
			}
		}
		return count
	}
	if count := slow(responses) - slow(services); slow(services) == 0 || count < 20 { // 60 were due in the first 300 ms
		t.Errorf("only %d response times more than service times contain the stall", count)
	}
	expect(t, "the number of response times", responses.TotalCount(), services.TotalCount())
}

func TestOperationsThatNeverEndAreUnfinished(t *testing.T) {
	begin := time.Now()
	_, summary := driven(t, Load{rate: 100, workers: 2, reads: 1, timeout: time.Minute},
		func(w http.ResponseWriter, r *http.Request) {
			if time.Since(begin) > 700*time.Millisecond {
				<-r.Context().Done()
			}
			echo(w, r)
		})
	if count := failures(summary)["read unfinished"]; count < 10 { // of 80
		t.Errorf("%d operations are unfinished: %v", count, summary)
	}
}

func TestErrorsHaveTheirKinds(t *testing.T) {
	var count atomic.Int64
	_, summary := driven(t, Load{rate: 100, workers: 8, reads: 0.5, timeout: 300 * time.Millisecond},
		func(w http.ResponseWriter, r *http.Request) {
			switch number := count.Add(1); {
			case r.Method == http.MethodPut:
				http.Error(w, "busy", http.StatusServiceUnavailable)
			case number%3 == 0:
				time.Sleep(600 * time.Millisecond)
			case number%3 == 1:
				_, _ = w.Write([]byte("item-of-nobody"))
			default:
				echo(w, r)
			}
		})
	counts := failures(summary)
	for _, kind := range []string{"write status-503", "read timeout", "read wrong-value"} {
		if counts[kind] == 0 {
			t.Errorf("there is no %q: %v", kind, counts)
		}
	}
}

func TestAClosedLoopHasServiceTimesOnly(t *testing.T) {
	sums, summary := driven(t, Load{workers: 2, reads: 0.5, timeout: time.Minute}, echo)
	expect(t, "response times", sums["read-rt"].TotalCount(), int64(0))
	if sums["read-st"].TotalCount() == 0 || sums["write-st"].TotalCount() == 0 || summary.Bytes[write] == 0 {
		t.Errorf("reads, writes or bytes are missing: %v", summary)
	}
}
