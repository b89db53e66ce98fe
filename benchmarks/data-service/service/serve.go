package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// mostBytes is the limit of a value.
const mostBytes = 1 << 20

// Step counts one kind of work of the service, and its time.
type Step struct{ count, errors, nanoseconds atomic.Int64 }

func (s *Step) took(since time.Time, err error) {
	if err != nil && !errors.Is(err, errMissing) {
		s.errors.Add(1)
		return
	}
	s.count.Add(1)
	s.nanoseconds.Add(int64(time.Since(since)))
}

func (s *Step) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]int64{
		"count": s.count.Load(), "errors": s.errors.Load(), "nanoseconds": s.nanoseconds.Load(),
	})
}

// Steps are the counters of a service since its start.
type Steps struct {
	Hit    Step `json:"cache-hit"`
	Miss   Step `json:"cache-miss"`
	Fill   Step `json:"cache-fill"`
	Update Step `json:"cache-update"`
	Select Step `json:"select"`
	Insert Step `json:"insert"`
}

// Service serves items from a store, with an optional cache in front of it.
//
// Reads go through the cache: a miss fills it. A fill never replaces a value, so it cannot undo a write that was
// faster. Writes go to the store first, and then replace the item in the cache, or remove it (invalidate).
type Service struct {
	store      Store
	cache      Cache // nil for none
	invalidate bool
	steps      Steps
}

// read returns an item. A cache that fails only costs its time.
func (s *Service) read(ctx context.Context, key string) ([]byte, error) {
	if s.cache != nil {
		began := time.Now()
		value, err := s.cache.get(key)
		if err == nil {
			s.steps.Hit.took(began, nil)
			return value, nil
		}
		s.steps.Miss.took(began, err)
	}
	began := time.Now()
	value, err := s.store.get(ctx, key)
	s.steps.Select.took(began, err)
	if err == nil && s.cache != nil {
		began = time.Now()
		s.steps.Fill.took(began, s.cache.add(key, value))
	}
	return value, err
}

// write stores an item. It fails if the cache may still have the old value.
func (s *Service) write(ctx context.Context, key string, value []byte) error {
	began := time.Now()
	err := s.store.put(ctx, key, value)
	s.steps.Insert.took(began, err)
	if s.cache == nil {
		return err
	}
	if err != nil {
		return errors.Join(err, s.cache.delete(key)) // the store may have the value nevertheless
	}
	began = time.Now()
	if !s.invalidate {
		err = s.cache.set(key, value)
	}
	if s.invalidate || err != nil {
		err = s.cache.delete(key)
	}
	s.steps.Update.took(began, err)
	return err
}

// handler serves GET and PUT of /items/KEY, GET of /health and /stats.
func (s *Service) handler() http.Handler {
	routes := http.NewServeMux()
	routes.HandleFunc("GET /items/{key}", func(w http.ResponseWriter, r *http.Request) {
		value, err := s.read(r.Context(), r.PathValue("key"))
		if errors.Is(err, errMissing) {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		if err != nil {
			refuse(w, err)
			return
		}
		w.Header().Set("Content-Type", "application/octet-stream")
		_, _ = w.Write(value)
	})
	routes.HandleFunc("PUT /items/{key}", func(w http.ResponseWriter, r *http.Request) {
		value, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostBytes))
		if err != nil {
			http.Error(w, fmt.Sprintf("the value cannot be read: %v; it has at most %d bytes", err, mostBytes),
				http.StatusBadRequest)
			return
		}
		if err := s.write(r.Context(), r.PathValue("key"), value); err != nil {
			refuse(w, err)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
	routes.HandleFunc("GET /health", func(w http.ResponseWriter, r *http.Request) {
		if _, err := s.store.get(r.Context(), Key(0)); err != nil && !errors.Is(err, errMissing) {
			refuse(w, err)
			return
		}
		if s.cache != nil {
			if _, err := s.cache.get(Key(0)); err != nil && !errors.Is(err, errMissing) {
				refuse(w, err)
				return
			}
		}
		_, _ = io.WriteString(w, "ok\n")
	})
	routes.HandleFunc("GET /stats", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(&s.steps)
	})
	return routes
}

func refuse(w http.ResponseWriter, err error) {
	http.Error(w, err.Error(), http.StatusServiceUnavailable)
}

func serveCommand(ctx context.Context, arguments []string) error {
	var ring Ring
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	ring.flags(flags)
	listen := flags.String("listen", "127.0.0.1:8080", "address and port")
	caches := flags.String("memcached", "", "addresses and ports of the caches, with commas between them; empty for none")
	cacheTimeout := flags.Duration("memcached-timeout", 250*time.Millisecond, "after this time a cache has failed")
	onWrite := flags.String("on-write", "set", "what a write does to the cached item: set or delete")
	if err := parse(flags, arguments); err != nil {
		return err
	}
	if *onWrite != "set" && *onWrite != "delete" {
		return fmt.Errorf("-on-write is %q: must be set or delete", *onWrite)
	}
	session, err := ring.open(ring.keyspace)
	if err != nil {
		return err
	}
	defer session.Close()
	service := &Service{store: cassandra{session}, invalidate: *onWrite == "delete"}
	if servers := list(*caches); len(servers) > 0 {
		service.cache = newMemcached(servers, 1024, *cacheTimeout)
	}
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: service.handler(), ReadHeaderTimeout: 10 * time.Second}
	go func() {
		<-ctx.Done()
		_ = server.Close()
	}()
	fmt.Printf("serving on %s\n", listener.Addr())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
