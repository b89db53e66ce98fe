package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

const (
	read  = "read"
	write = "write"
	// recent is the length of the periods over which the slowest operation is known.
	recent = 10 * time.Second
	// highest is the longest time of a histogram.
	highest = time.Hour
)

var errWrongValue = errors.New("the value belongs to another key")

// statusError is an answer with another status than success.
type statusError int

func (s statusError) Error() string { return fmt.Sprintf("status-%d", int(s)) }

// Failure counts errors of one kind in an interval.
type Failure struct {
	Middle    float64 `json:"middle"` // of the interval, in seconds since 1970
	Operation string  `json:"operation"`
	Kind      string  `json:"kind"`
	Count     int64   `json:"count"`
}

// Summary is what the log of times has no place for.
type Summary struct {
	Failures []Failure        `json:"failures"`
	Bytes    map[string]int64 `json:"bytes"` // of successes in the measured time
}

// Recording collects operations in intervals of a second, which begin at full seconds from the measured time on, and
// writes a line to the log for each interval and tag.
type Recording struct {
	mutex            sync.Mutex
	log              *hdr.HistogramLogWriter
	from, until      time.Time // the measured time
	isOpenLoop       bool
	second           int64 // of the current interval, relative to the beginning of the measured time
	times            map[string]*hdr.Histogram
	errors           map[[2]string]int64
	summary          Summary
	period           int64
	slowest, earlier time.Duration // response times in this period and in the one before
	isClosed         bool
	problem          error
}

func newRecording(log io.Writer, from, until time.Time, isOpenLoop bool) *Recording {
	recording := &Recording{
		log: hdr.NewHistogramLogWriter(log), from: from, until: until, isOpenLoop: isOpenLoop,
		second: math.MinInt64, times: map[string]*hdr.Histogram{}, errors: map[[2]string]int64{},
		summary: Summary{Failures: []Failure{}, Bytes: map[string]int64{read: 0, write: 0}},
	}
	for _, operation := range []string{read, write} {
		for _, meaning := range []string{"rt", "st"} {
			tag := operation + "-" + meaning
			recording.times[tag] = hdr.New(1, int64(highest), 3)
		}
	}
	return recording
}

// end records an operation that ended now. Operations after the measured time do not count.
func (r *Recording) end(operation string, due, sent, now time.Time, moved int, kind string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.isClosed || !now.Before(r.until) {
		return
	}
	r.turn(int64(math.Floor(now.Sub(r.from).Seconds())))
	if period := int64(now.Sub(r.from) / recent); period != r.period {
		r.period, r.earlier, r.slowest = period, r.slowest, 0
	}
	r.slowest = max(r.slowest, now.Sub(due))
	if kind != "" {
		r.errors[[2]string{operation, kind}]++
		return
	}
	if !now.Before(r.from) {
		r.summary.Bytes[operation] += int64(moved)
	}
	r.record(operation+"-st", now.Sub(sent))
	if r.isOpenLoop {
		r.record(operation+"-rt", now.Sub(due))
	}
}

func (r *Recording) record(tag string, time time.Duration) {
	if err := r.times[tag].RecordValue(int64(min(max(time, 0), highest))); err != nil {
		r.problem = err
	}
}

// turn ends the current interval if another one has begun.
func (r *Recording) turn(second int64) {
	if second == r.second {
		return
	}
	if r.second != math.MinInt64 {
		r.flush()
	}
	r.second = second
}

func (r *Recording) flush() {
	begin := r.from.Add(time.Duration(r.second) * time.Second)
	for _, tag := range []string{"read-rt", "read-st", "write-rt", "write-st"} {
		times := r.times[tag]
		times.SetTag(tag) // a reset removes it
		times.SetStartTimeMs(begin.UnixMilli())
		times.SetEndTimeMs(begin.UnixMilli() + 1000)
		if err := r.log.OutputIntervalHistogram(times); err != nil {
			r.problem = err
		}
		times.Reset()
	}
	middle := float64(begin.UnixMilli())/1000 + 0.5
	for what, count := range r.errors {
		r.summary.Failures = append(r.summary.Failures, Failure{middle, what[0], what[1], count})
	}
	clear(r.errors)
}

// close ends the recording. Operations that were due and have not ended are errors of the kind "unfinished", if they
// waited longer than those that ended last: the others are merely under way.
func (r *Recording) close(pending func(latest time.Time) map[string]int64) (Summary, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.isClosed = true
	if r.isOpenLoop {
		r.turn(int64(math.Ceil(r.until.Sub(r.from).Seconds())) - 1)
		for operation, count := range pending(r.until.Add(-max(r.slowest, r.earlier))) {
			r.errors[[2]string{operation, "unfinished"}] += count
		}
	}
	if r.second != math.MinInt64 {
		r.flush()
	}
	return r.summary, r.problem
}

// Load is what a driver sends.
type Load struct {
	targets    []string
	rate       float64 // operations a second; 0 for a closed loop
	workers    int
	items      int64
	skew       float64
	reads      float64 // part of the operations
	valueBytes int
	seed       uint64
	timeout    time.Duration
}

// Request is one operation: its number determines it.
type Request struct {
	operation, key string
	salt           uint64
}

func (l *Load) request(number int64) Request {
	numbers := Numbers(l.seed*0x9e3779b97f4a7c15 ^ uint64(number)*0xd1342543de82ef95)
	operation := write
	if numbers.unit() < l.reads {
		operation = read
	}
	return Request{operation, Key(chosen(&numbers, l.items, l.skew)), numbers.next() | 1}
}

func (l *Load) check() error {
	switch {
	case len(l.targets) == 0:
		return errors.New("-targets is missing")
	case l.workers < 1 || l.items < 1 || l.valueBytes < 32:
		return errors.New("-workers and -items must be at least 1, and -value-bytes at least 32")
	case l.rate < 0 || l.skew < 1 || l.reads < 0 || l.reads > 1:
		return errors.New("-rate must be at least 0, -skew at least 1, and -reads from 0 to 1")
	}
	return nil
}

// perform sends an operation to a service, and returns the bytes of its value.
func (l *Load) perform(ctx context.Context, client *http.Client, target string, request Request) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	url := "http://" + target + "/items/" + request.key
	if request.operation == write {
		value := Value(request.key, l.valueBytes, request.salt)
		if _, err := exchange(ctx, client, http.MethodPut, url, value); err != nil {
			return 0, err
		}
		return len(value), nil
	}
	value, err := exchange(ctx, client, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	if !belongs(request.key, value) {
		return 0, errWrongValue
	}
	return len(value), nil
}

func exchange(ctx context.Context, client *http.Client, method, url string, body []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	answer, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode/100 != 2 {
		err = statusError(answer.StatusCode)
	}
	return content, err
}

// kindOf names the kind of an error; "" for none.
func kindOf(err error) string {
	var status statusError
	var network net.Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &status):
		return status.Error()
	case errors.Is(err, errWrongValue):
		return "wrong-value"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return "timeout"
	default:
		return "connection"
	}
}

// slot is the operation that a worker has taken.
type slot struct {
	number int64
	isBusy bool
}

// drive sends the load from begin until the end of the recording, whose summary it returns.
//
// In an open loop, operation n is due at begin + n / rate, however slow the earlier ones are. A worker that is late
// takes the operations that it missed without a pause.
func drive(ctx context.Context, load *Load, begin time.Time, recording *Recording) (Summary, error) {
	ctx, cancel := context.WithDeadline(ctx, recording.until)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{
		MaxIdleConnsPerHost: load.workers, MaxConnsPerHost: 0, DisableCompression: true, IdleConnTimeout: time.Minute,
	}}
	var mutex sync.Mutex
	var next int64
	slots := make([]slot, load.workers)
	due := func(number int64) time.Time {
		return begin.Add(time.Duration(float64(number) / load.rate * float64(time.Second)))
	}
	take := func(own *slot) int64 {
		mutex.Lock()
		defer mutex.Unlock()
		own.number, own.isBusy = next, true
		next++
		return own.number
	}
	release := func(own *slot) {
		mutex.Lock()
		defer mutex.Unlock()
		own.isBusy = false
	}
	if !wait(ctx, begin) {
		return Summary{}, errors.New("the measured time is already over, or the driver was stopped")
	}
	for n := range slots {
		go func(own *slot) {
			for ctx.Err() == nil {
				number := take(own)
				moment := time.Now()
				if load.rate > 0 {
					moment = due(number)
					if !moment.Before(recording.until) || !wait(ctx, moment) {
						return // leaves the operation pending
					}
				}
				request := load.request(number)
				sent := time.Now()
				moved, err := load.perform(ctx, client, load.targets[number%int64(len(load.targets))], request)
				now := time.Now()
				if !now.Before(recording.until) {
					return // leaves the operation pending
				}
				recording.end(request.operation, moment, sent, now, moved, kindOf(err))
				release(own)
			}
		}(&slots[n])
	}
	<-ctx.Done()
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return Summary{}, errors.New("the driver was stopped")
	}
	return recording.close(func(latest time.Time) map[string]int64 {
		mutex.Lock()
		defer mutex.Unlock()
		pending := map[string]int64{}
		for _, one := range slots {
			if one.isBusy && due(one.number).Before(latest) {
				pending[load.request(one.number).operation]++
			}
		}
		for number := next; due(number).Before(latest); number++ {
			pending[load.request(number).operation]++
		}
		return pending
	})
}

// wait returns at a moment, or false if the context ends before.
func wait(ctx context.Context, moment time.Time) bool {
	if left := time.Until(moment); left > 0 {
		timer := time.NewTimer(left)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return false
		}
	}
	return ctx.Err() == nil
}

// moment converts seconds since 1970 to a time of the monotonic clock, which a change of the clock does not move.
func moment(now time.Time, seconds float64) time.Time {
	return now.Add(time.Duration((seconds - float64(now.UnixNano())/1e9) * 1e9))
}

func driveCommand(ctx context.Context, arguments []string) error {
	var load Load
	flags := flag.NewFlagSet("drive", flag.ContinueOnError)
	targets := flags.String("targets", "", "addresses and ports of the services, with commas between them")
	flags.Float64Var(&load.rate, "rate", 0, "operations a second; 0 for a closed loop")
	flags.IntVar(&load.workers, "workers", 256, "the most operations at a time")
	flags.Int64Var(&load.items, "items", 0, "number of items")
	flags.Float64Var(&load.skew, "skew", 4, "how much items with low numbers are preferred; 1 for not at all")
	flags.Float64Var(&load.reads, "reads", 0.9, "part of the operations that read")
	flags.IntVar(&load.valueBytes, "value-bytes", 1000, "length of a value")
	flags.Uint64Var(&load.seed, "seed", 1, "determines all operations")
	flags.DurationVar(&load.timeout, "timeout", 5*time.Second, "after this time an operation has failed")
	begin := flags.Float64("begin", 0, "start of the load, in seconds since 1970; by default now")
	from := flags.Float64("from", 0, "start of the measured time, in seconds since 1970")
	until := flags.Float64("until", 0, "end of the measured time, in seconds since 1970")
	log := flags.String("log", "drive.hlog", "file for the interval log of times")
	report := flags.String("summary", "drive.json", "file for errors and bytes")
	if err := parse(flags, arguments); err != nil {
		return err
	}
	load.targets = list(*targets)
	if err := load.check(); err != nil {
		return err
	}
	file, err := os.Create(*log)
	if err != nil {
		return err
	}
	defer file.Close()
	now := time.Now()
	start := now
	if *begin > 0 {
		start = moment(now, *begin)
	}
	recording := newRecording(file, moment(now, *from), moment(now, *until), load.rate > 0)
	summary, err := drive(ctx, &load, start, recording)
	if err != nil {
		return err
	}
	text, err := json.Marshal(summary)
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(*report, text, 0o644), file.Sync())
}
