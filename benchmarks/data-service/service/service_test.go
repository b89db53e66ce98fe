package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// shelf is a store or a cache in memory.
type shelf struct {
	mutex  sync.Mutex
	items  map[string]string
	broken error
	reads  int
	before func() // runs at the start of a read
}

func newShelf() *shelf { return &shelf{items: map[string]string{}} }

func (s *shelf) look(key string) ([]byte, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.reads++
	if s.broken != nil {
		return nil, s.broken
	}
	if value, found := s.items[key]; found {
		return []byte(value), nil
	}
	return nil, errMissing
}

func (s *shelf) set(key string, value []byte) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.broken == nil {
		s.items[key] = string(value)
	}
	return s.broken
}

type shelfStore struct{ *shelf }

func (s shelfStore) get(_ context.Context, key string) ([]byte, error) {
	value, err := s.look(key)
	if s.before != nil {
		s.before()
	}
	return value, err
}

func (s shelfStore) put(_ context.Context, key string, value []byte) error { return s.set(key, value) }

type shelfCache struct{ *shelf }

func (c shelfCache) get(key string) ([]byte, error) { return c.look(key) }

func (c shelfCache) add(key string, value []byte) error {
	c.mutex.Lock()
	_, found := c.items[key]
	c.mutex.Unlock()
	if found {
		return nil
	}
	return c.set(key, value)
}

func (c shelfCache) delete(key string) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.broken == nil {
		delete(c.items, key)
	}
	return c.broken
}

func serving(invalidate bool) (*Service, *shelf, *shelf) {
	store, cache := newShelf(), newShelf()
	return &Service{store: shelfStore{store}, cache: shelfCache{cache}, invalidate: invalidate}, store, cache
}

func expect(t *testing.T, what string, value, expected any) {
	t.Helper()
	if value != expected {
		t.Errorf("%s is %v instead of %v", what, value, expected)
	}
}

func TestAMissFillsTheCacheAndAHitSparesTheStore(t *testing.T) {
	service, store, cache := serving(false)
	store.items["a"] = "1"
	for range 3 {
		value, err := service.read(context.Background(), "a")
		expect(t, "the value", string(value), "1")
		expect(t, "the error", err, nil)
	}
	expect(t, "the number of the store's reads", store.reads, 1)
	expect(t, "the cached value", cache.items["a"], "1")
	expect(t, "hits", service.steps.Hit.count.Load(), int64(2))
	expect(t, "misses", service.steps.Miss.count.Load(), int64(1))
}

func TestAWriteReplacesOrRemovesTheCachedItem(t *testing.T) {
	for _, invalidate := range []bool{false, true} {
		service, store, cache := serving(invalidate)
		store.items["a"], cache.items["a"] = "1", "1"
		expect(t, "the error", service.write(context.Background(), "a", []byte("2")), nil)
		expect(t, "the stored value", store.items["a"], "2")
		value, _ := service.read(context.Background(), "a")
		expect(t, "the value", string(value), "2")
		expect(t, "the number of the store's reads", store.reads == 1, invalidate)
	}
}

func TestAFillDoesNotUndoAWriteThatIsFaster(t *testing.T) {
	service, store, cache := serving(false)
	store.items["a"] = "1"
	store.before = func() {
		store.before = nil
		_ = service.write(context.Background(), "a", []byte("2"))
	}
	_, _ = service.read(context.Background(), "a")
	expect(t, "the cached value", cache.items["a"], "2")
}

func TestACacheThatFailsCostsReadsNothingButRefusesWrites(t *testing.T) {
	service, store, cache := serving(false)
	store.items["a"], cache.broken = "1", errors.New("no route")
	value, err := service.read(context.Background(), "a")
	expect(t, "the value", string(value), "1")
	expect(t, "the error", err, nil)
	expect(t, "errors of the cache", service.steps.Miss.errors.Load(), int64(1))
	if service.write(context.Background(), "a", []byte("2")) == nil {
		t.Error("the cache may have the old value, and the write succeeds")
	}
}

func TestAFailedWriteLeavesNoItemInTheCache(t *testing.T) {
	service, store, cache := serving(false)
	store.broken, cache.items["a"] = errors.New("timeout"), "1"
	if service.write(context.Background(), "a", []byte("2")) == nil {
		t.Error("the write succeeds without the store")
	}
	_, found := cache.items["a"]
	expect(t, "whether the cache has the item", found, false)
}

func request(t *testing.T, method, url, body string) (int, string) {
	t.Helper()
	asked, _ := http.NewRequest(method, url, strings.NewReader(body))
	answer, err := http.DefaultClient.Do(asked)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	return answer.StatusCode, string(text)
}

func TestTheServiceAnswersOverHTTP(t *testing.T) {
	service, store, _ := serving(false)
	server := httptest.NewServer(service.handler())
	defer server.Close()
	for _, one := range []struct {
		method, path, body string
		status             int
		answer             string
	}{
		{"GET", "/items/a", "", 404, errMissing.Error() + "\n"},
		{"PUT", "/items/a", "1", 204, ""},
		{"GET", "/items/a", "", 200, "1"},
		{"PUT", "/items/b", strings.Repeat("x", mostBytes+1), 400, ""},
		{"DELETE", "/items/a", "", 405, ""},
		{"GET", "/health", "", 200, "ok\n"},
	} {
		status, answer := request(t, one.method, server.URL+one.path, one.body)
		expect(t, "the status of "+one.method+" "+one.path, status, one.status)
		if one.answer != "" {
			expect(t, "the answer to "+one.method+" "+one.path, answer, one.answer)
		}
	}
	_, stats := request(t, "GET", server.URL+"/stats", "")
	if !strings.Contains(stats, `"cache-hit":{"count":1,`) {
		t.Errorf("one read was a hit, but the service states %s", stats)
	}
	store.broken = errors.New("no route")
	status, _ := request(t, "GET", server.URL+"/health", "")
	expect(t, "the status without a store", status, 503)
}
