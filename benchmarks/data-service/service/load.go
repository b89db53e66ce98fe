package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"sync"
	"sync/atomic"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
)

const tries = 10

// workers runs a function in several goroutines, and returns the first error, which ends all of them.
func workers(ctx context.Context, count int, run func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	for range count {
		all.Go(func() {
			if err := run(ctx); err != nil {
				cancel(err)
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// patiently repeats a request that may fail while servers are busy.
func patiently(ctx context.Context, request func() error) error {
	var err error
	for n := range tries {
		if err = request(); err == nil || ctx.Err() != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(min(100*time.Millisecond<<n, 5*time.Second)):
		}
	}
	return err
}

// load writes all items that it receives, and adds them to the digest.
func load(ctx context.Context, store Store, count int, items <-chan Item, digest *Digest) error {
	return workers(ctx, count, func(ctx context.Context) error {
		for {
			select {
			case item, more := <-items:
				if !more {
					return nil
				}
				err := patiently(ctx, func() error { return store.put(ctx, item.key, item.value) })
				if err != nil {
					return fmt.Errorf("item %s cannot be written: %w", item.key, err)
				}
				digest.add(item.key, item.value)
			case <-ctx.Done():
				return nil
			}
		}
	})
}

// loadCommand writes items to Cassandra, and prints their number and digest.
func loadCommand(ctx context.Context, arguments []string) error {
	var ring Ring
	var set DataSet
	flags := flag.NewFlagSet("load", flag.ContinueOnError)
	ring.flags(flags)
	set.flags(flags)
	count := flags.Int("workers", 128, "concurrent writes")
	if err := parse(flags, arguments); err != nil {
		return err
	}
	session, err := ring.open(ring.keyspace)
	if err != nil {
		return err
	}
	defer session.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	items, ended := make(chan Item, 2**count), make(chan error, 1)
	go func() {
		defer close(items)
		if set.end == 0 {
			ended <- lines(ctx, os.Stdin, items)
			return
		}
		ended <- set.each(func(item Item) error {
			select {
			case items <- item:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	var digest Digest
	if err := load(ctx, cassandra{session}, *count, items, &digest); err != nil {
		return err
	}
	if err := <-ended; err != nil {
		return err
	}
	return printJSON(&digest)
}

// bounds divides the ring into ranges of about equal length: (bounds[n], bounds[n+1]] for each n.
func bounds(count int) []int64 {
	step := math.MaxUint64/uint64(count) + 1
	limits := make([]int64, count+1)
	for n := range count {
		limits[n] = math.MinInt64 + int64(uint64(n)*step) // wraps around to the positive numbers
	}
	limits[count] = math.MaxInt64
	return limits
}

// verifyCommand reads the whole table, and prints the number and the digest of its items.
func verifyCommand(ctx context.Context, arguments []string) error {
	var ring Ring
	flags := flag.NewFlagSet("verify", flag.ContinueOnError)
	ring.flags(flags)
	count := flags.Int("workers", 32, "concurrent reads")
	ranges := flags.Int("ranges", 4096, "parts of the ring that are read one by one")
	if err := parse(flags, arguments); err != nil {
		return err
	}
	session, err := ring.open(ring.keyspace)
	if err != nil {
		return err
	}
	defer session.Close()
	var digest Digest
	var next atomic.Int64
	limits := bounds(*ranges)
	err = workers(ctx, *count, func(ctx context.Context) error {
		for n := next.Add(1) - 1; n < int64(*ranges) && ctx.Err() == nil; n = next.Add(1) - 1 {
			var part []Item
			err := patiently(ctx, func() (err error) {
				part, err = scan(ctx, session, limits[n], limits[n+1])
				return err
			})
			if err != nil {
				return err
			}
			for _, item := range part {
				digest.add(item.key, item.value)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return printJSON(&digest)
}

// scan reads the items with tokens above low and up to high.
func scan(ctx context.Context, session *gocql.Session, low, high int64) (part []Item, err error) {
	rows := session.Query("SELECT key, value FROM items WHERE token(key) > ? AND token(key) <= ?", low, high).
		PageSize(500).Idempotent(true).IterContext(ctx)
	var item Item
	for rows.Scan(&item.key, &item.value) {
		part = append(part, item)
		item = Item{}
	}
	return part, errors.Join(rows.Close(), ctx.Err())
}
