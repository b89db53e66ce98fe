package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
	"github.com/bradfitz/gomemcache/memcache"
)

var errMissing = errors.New("there is no such item")

// Store keeps items for good. get returns errMissing without an item.
type Store interface {
	get(ctx context.Context, key string) ([]byte, error)
	put(ctx context.Context, key string, value []byte) error
}

// Cache keeps items for some time. get returns errMissing without an item.
type Cache interface {
	get(key string) ([]byte, error)
	set(key string, value []byte) error
	// add stores an item only if there is none.
	add(key string, value []byte) error
	delete(key string) error
}

// Ring says how to reach Cassandra.
type Ring struct {
	hosts, keyspace, consistency string
	connections                  int
	timeout                      time.Duration
}

func (r *Ring) flags(flags *flag.FlagSet) {
	flags.StringVar(&r.hosts, "cassandra", "", "addresses of some servers, with commas between them")
	flags.StringVar(&r.keyspace, "keyspace", "items", "the keyspace")
	flags.StringVar(&r.consistency, "consistency", "ONE", "of reads and writes")
	flags.IntVar(&r.connections, "connections", 4, "connections to each server")
	flags.DurationVar(&r.timeout, "cassandra-timeout", 2*time.Second, "after this time a request has failed")
}

// open connects to the ring, without a keyspace if there is none yet.
func (r *Ring) open(keyspace string) (*gocql.Session, error) {
	consistency, err := gocql.ParseConsistencyWrapper(r.consistency)
	if err != nil {
		return nil, err
	}
	if r.hosts == "" {
		return nil, errors.New("-cassandra is missing")
	}
	cluster := gocql.NewCluster(list(r.hosts)...)
	cluster.Keyspace, cluster.Consistency = keyspace, consistency
	cluster.NumConns = r.connections
	cluster.Timeout, cluster.WriteTimeout = r.timeout, r.timeout
	cluster.PoolConfig.HostSelectionPolicy = gocql.TokenAwareHostPolicy(gocql.RoundRobinHostPolicy())
	return cluster.CreateSession()
}

type cassandra struct{ session *gocql.Session }

func (c cassandra) get(ctx context.Context, key string) ([]byte, error) {
	var value []byte
	err := c.session.Query("SELECT value FROM items WHERE key = ?", key).Idempotent(true).ScanContext(ctx, &value)
	if errors.Is(err, gocql.ErrNotFound) {
		return nil, errMissing
	}
	return value, err
}

func (c cassandra) put(ctx context.Context, key string, value []byte) error {
	return c.session.Query("INSERT INTO items (key, value) VALUES (?, ?)", key, value).Idempotent(true).ExecContext(ctx)
}

// memcached shards keys over its servers by a hash.
type memcached struct{ client *memcache.Client }

func newMemcached(servers []string, idle int, timeout time.Duration) memcached {
	client := memcache.New(servers...)
	client.MaxIdleConns, client.Timeout = idle, timeout
	return memcached{client}
}

func (m memcached) get(key string) ([]byte, error) {
	item, err := m.client.Get(key)
	if errors.Is(err, memcache.ErrCacheMiss) {
		return nil, errMissing
	}
	if err != nil {
		return nil, err
	}
	return item.Value, nil
}

func (m memcached) set(key string, value []byte) error {
	return m.client.Set(&memcache.Item{Key: key, Value: value})
}

func (m memcached) add(key string, value []byte) error {
	if err := m.client.Add(&memcache.Item{Key: key, Value: value}); !errors.Is(err, memcache.ErrNotStored) {
		return err
	}
	return nil // a write was faster, and its value is the newer one
}

func (m memcached) delete(key string) error {
	if err := m.client.Delete(key); !errors.Is(err, memcache.ErrCacheMiss) {
		return err
	}
	return nil
}

// schemaCommand creates keyspace and table.
func schemaCommand(ctx context.Context, arguments []string) error {
	var ring Ring
	flags := flag.NewFlagSet("schema", flag.ContinueOnError)
	ring.flags(flags)
	replicas := flags.Int("replicas", 3, "copies of each item")
	datacenter := flags.String("datacenter", "dc1", "its name")
	compaction := flags.String("compaction", "SizeTieredCompactionStrategy", "the class of the compaction strategy")
	if err := parse(flags, arguments); err != nil {
		return err
	}
	session, err := ring.open("")
	if err != nil {
		return err
	}
	defer session.Close()
	for _, statement := range []string{
		fmt.Sprintf(`CREATE KEYSPACE IF NOT EXISTS %s WITH REPLICATION =
			{'class': 'NetworkTopologyStrategy', '%s': %d}`, ring.keyspace, *datacenter, *replicas),
		// Values are random, so compression would only cost time.
		fmt.Sprintf(`CREATE TABLE IF NOT EXISTS %s.items (key text PRIMARY KEY, value blob)
			WITH compression = {'enabled': false} AND compaction = {'class': '%s'}`, ring.keyspace, *compaction),
	} {
		if err := session.Query(statement).ExecContext(ctx); err != nil {
			return err
		}
	}
	return session.AwaitSchemaAgreement(ctx)
}
