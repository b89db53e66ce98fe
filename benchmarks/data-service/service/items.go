package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"sync/atomic"
)

const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// longest is the longest line of a data set, in bytes.
const longest = 4 << 20

// Key returns the key of an item. Cassandra hashes keys, so neighbours by number are no neighbours on disk.
func Key(number int64) string { return fmt.Sprintf("item-%012d", number) }

// Numbers is a sequence of random numbers that its seed determines (splitmix64).
type Numbers uint64

func (n *Numbers) next() uint64 {
	*n += 0x9e3779b97f4a7c15
	z := uint64(*n)
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb
	return z ^ (z >> 31)
}

// unit returns a number from 0 to below 1.
func (n *Numbers) unit() float64 { return float64(n.next()>>11) / (1 << 53) }

// Value returns a value of the given length, in bytes, that begins with its key and that the seed determines.
func Value(key string, length int, seed uint64) []byte {
	hash := sha256.Sum256([]byte(key))
	numbers := Numbers(binary.BigEndian.Uint64(hash[:]) ^ seed*0x9e3779b97f4a7c15)
	value := make([]byte, 0, length+10)
	value = append(append(value, key...), '.')
	for len(value) < length {
		for bits, n := numbers.next(), 0; n < 10; n++ {
			value = append(value, letters[bits&63])
			bits >>= 6
		}
	}
	return value[:max(length, len(key)+1)]
}

// belongs reports whether a value is one of the key's.
func belongs(key string, value []byte) bool {
	return len(value) > len(key) && value[len(key)] == '.' && string(value[:len(key)]) == key
}

// Digest identifies a set of items, regardless of their order: the sum of a hash of each.
type Digest struct {
	rows, sum atomic.Uint64
}

func (d *Digest) add(key string, value []byte) {
	hash := sha256.New()
	_, _ = io.WriteString(hash, key)
	_, _ = hash.Write([]byte{'\t'})
	_, _ = hash.Write(value)
	d.sum.Add(binary.BigEndian.Uint64(hash.Sum(nil)))
	d.rows.Add(1)
}

func (d *Digest) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]any{"rows": d.rows.Load(), "digest": fmt.Sprintf("%016x", d.sum.Load())})
}

// Item is a key with its value.
type Item struct {
	key   string
	value []byte
}

// lines sends the items of a data set: a line for each, with a tab between key and value.
func lines(ctx context.Context, in io.Reader, items chan<- Item) error {
	scanner := bufio.NewScanner(in)
	scanner.Buffer(make([]byte, 1<<20), longest)
	for number := 1; scanner.Scan(); number++ {
		key, value, found := bytes.Cut(scanner.Bytes(), []byte{'\t'})
		if !found || len(key) == 0 {
			return fmt.Errorf("line %d of the data set has no key and tab", number)
		}
		select {
		case items <- Item{string(key), bytes.Clone(value)}:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return scanner.Err()
}

// DataSet describes generated items.
type DataSet struct {
	items, first, end int64
	bytes             int
	seed              uint64
}

func (d *DataSet) flags(flags *flag.FlagSet) {
	flags.Int64Var(&d.first, "first", 0, "number of the first item")
	flags.Int64Var(&d.end, "end", 0, "number after the last item")
	flags.IntVar(&d.bytes, "value-bytes", 1000, "length of a value")
	flags.Uint64Var(&d.seed, "seed", 1, "determines all values")
}

func (d *DataSet) each(use func(Item) error) error {
	if d.first < 0 || d.end <= d.first || d.bytes < 32 {
		return errors.New("-first, -end and -value-bytes must describe items, of at least 32 bytes each")
	}
	for number := d.first; number < d.end; number++ {
		key := Key(number)
		if err := use(Item{key, Value(key, d.bytes, d.seed)}); err != nil {
			return err
		}
	}
	return nil
}

// datasetCommand writes items as lines to stdout, and their number and digest to stderr.
func datasetCommand(_ context.Context, arguments []string) error {
	var set DataSet
	flags := flag.NewFlagSet("dataset", flag.ContinueOnError)
	set.flags(flags)
	if err := parse(flags, arguments); err != nil {
		return err
	}
	var digest Digest
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	err := set.each(func(item Item) error {
		digest.add(item.key, item.value)
		_, _ = out.WriteString(item.key)
		_ = out.WriteByte('\t')
		_, _ = out.Write(item.value)
		return out.WriteByte('\n')
	})
	if err = errors.Join(err, out.Flush()); err != nil {
		return err
	}
	return json.NewEncoder(os.Stderr).Encode(&digest)
}

// chosen returns the number of an item: the lower its number, the more often. With skew 1, all are equally likely; the
// first part p of the items receives the part p^(1/skew).
func chosen(numbers *Numbers, items int64, skew float64) int64 {
	return min(int64(float64(items)*math.Pow(numbers.unit(), skew)), items-1)
}
