package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// memcached starts one and returns its address.
func memcached(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("memcached")
	if err != nil {
		t.Skip("memcached is not installed")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	_, port, _ := net.SplitHostPort(address)
	process := exec.Command(path, "-u", "nobody", "-l", "127.0.0.1", "-p", port, "-U", "0", "-t", "1")
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { process.Process.Kill(); process.Wait() })
	for range 600 {
		if c, err := net.Dial("tcp", address); err == nil {
			c.Close()
			return address
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("memcached does not listen")
	return ""
}

type browser struct {
	t      *testing.T
	client *http.Client
	base   string
}

// system starts both services on two data nodes and returns a browser, the number of authentication calls, and the authentication service.
func system(t *testing.T) (*browser, func() int, *httptest.Server) {
	s := newStore([]string{memcached(t), memcached(t)})
	if count, err := fill(s, 0, 1, 3, 5); err != nil || count != 30*29*3+5 {
		t.Fatalf("%d values: %v", count, err)
	}
	var calls sync.Map
	service := authenticationHandler(s)
	authentication := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Store(new(int), true)
		service.ServeHTTP(w, r)
	}))
	t.Cleanup(authentication.Close)
	front := httptest.NewServer(webHandler(s, []string{strings.TrimPrefix(authentication.URL, "http://")}))
	t.Cleanup(front.Close)
	jar, _ := cookiejar.New(nil)
	count := func() int {
		total := 0
		calls.Range(func(any, any) bool { total++; return true })
		return total
	}
	return &browser{t, &http.Client{Jar: jar}, front.URL}, count, authentication
}

func (b *browser) send(method, path string, form url.Values, status int) map[string]any {
	b.t.Helper()
	request, _ := http.NewRequest(method, b.base+path, strings.NewReader(form.Encode()))
	if form != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	response, err := b.client.Do(request)
	if err != nil {
		b.t.Fatal(err)
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body)
	if response.StatusCode != status {
		b.t.Fatalf("%s %s: %d instead of %d: %s", method, path, response.StatusCode, status, body)
	}
	document := map[string]any{}
	if err := json.Unmarshal(body, &document); err != nil {
		b.t.Fatalf("%s %s: %v: %s", method, path, err, body)
	}
	return document
}

func login(user, password string) url.Values {
	return url.Values{"user": {user}, "password": {password}}
}

func TestASessionBooksAndCancelsAndEachRequestCallsTheAuthenticationService(t *testing.T) {
	b, calls, _ := system(t)
	b.send("POST", "/session", login("user1", passwordOf("user1")), 200)
	flights := b.send("GET", "/flights?from=FRA&to=JFK&day=1&back=3", nil, 200)
	out, back := flights["out"].([]any)[0].(map[string]any), flights["back"].([]any)[0].(map[string]any)
	if out["from"] != "FRA" || back["from"] != "JFK" || back["day"] != 3.0 {
		t.Fatal(out, back)
	}
	booked := b.send("POST", "/bookings", url.Values{"flight": {out["id"].(string)}}, 201)
	listed := b.send("GET", "/bookings", nil, 200)["bookings"].([]any)
	if len(listed) != 1 || listed[0].(map[string]any)["booking"] != booked["booking"] {
		t.Fatal(listed)
	}
	b.send("DELETE", "/bookings/"+booked["booking"].(string), nil, 200)
	b.send("DELETE", "/bookings/"+booked["booking"].(string), nil, 404)
	if left := b.send("GET", "/bookings", nil, 200)["bookings"].([]any); len(left) != 0 {
		t.Fatal(left)
	}
	b.send("DELETE", "/session", nil, 200)
	if calls() != 8 {
		t.Fatalf("%d calls for 8 requests", calls())
	}
	b.send("GET", "/bookings", nil, 401)
}

func TestAnEndedSessionIsOverAlsoForItsCookie(t *testing.T) {
	b, _, _ := system(t)
	b.send("POST", "/session", login("user2", passwordOf("user2")), 200)
	base, _ := url.Parse(b.base)
	cookies := b.client.Jar.Cookies(base)
	b.send("DELETE", "/session", nil, 200)
	b.client.Jar.SetCookies(base, cookies)
	b.send("GET", "/bookings", nil, 401)
}

func TestWrongInputIsRefused(t *testing.T) {
	b, _, _ := system(t)
	b.send("POST", "/session", login("user1", "guess"), 401)
	b.send("POST", "/session", login("user99", passwordOf("user99")), 404)
	b.send("POST", "/session", login("user1\r\nflush_all", "x"), 401)
	b.send("POST", "/session", login("user1", passwordOf("user1")), 200)
	b.send("GET", "/flights?from=FRA&to=fra%0d%0a&day=1&back=1", nil, 400)
	b.send("GET", "/flights?from=FRA&to=JFK&day=4&back=1", nil, 404)
	b.send("POST", "/bookings", url.Values{"flight": {"FRA-JFK-1-77"}}, 404)
	b.send("POST", "/bookings", url.Values{"flight": {"nothing"}}, 400)
}

func TestAFailedServiceIsNamedByTheStatus(t *testing.T) {
	b, _, authentication := system(t)
	b.send("POST", "/session", login("user1", passwordOf("user1")), 200)
	authentication.CloseClientConnections()
	authentication.Close()
	b.send("GET", "/bookings", nil, 503)

	s := newStore([]string{"127.0.0.1:1"})
	recorder := httptest.NewRecorder()
	request := httptest.NewRequest("GET", "/sessions/ABC", nil)
	authenticationHandler(s).ServeHTTP(recorder, request)
	if recorder.Code != 500 {
		t.Fatal(recorder.Code)
	}
}

func TestNoBookingIsLostWhenTheSameCustomerBooksAtTheSameTime(t *testing.T) {
	b, _, _ := system(t)
	b.send("POST", "/session", login("user3", passwordOf("user3")), 200)
	var group sync.WaitGroup
	for n := range mostBookings {
		group.Go(func() {
			b.send("POST", "/bookings", url.Values{"flight": {fmt.Sprintf("FRA-JFK-%d-%d", 1+n%3, n%4)}}, 201)
		})
	}
	group.Wait()
	if bookings := b.send("GET", "/bookings", nil, 200)["bookings"].([]any); len(bookings) != mostBookings {
		t.Fatalf("%d bookings", len(bookings))
	}
	b.send("POST", "/bookings", url.Values{"flight": {"FRA-JFK-1-0"}}, 201)
	if bookings := b.send("GET", "/bookings", nil, 200)["bookings"].([]any); len(bookings) != mostBookings {
		t.Fatalf("%d bookings after one more", len(bookings))
	}
}

func TestKeysAreOnAllDataNodes(t *testing.T) {
	s := newStore(make([]string, 46))
	counts := map[*server]int{}
	for n := range 46_000 {
		counts[s.serverOf(sessionKey(fmt.Sprint(n)))]++
	}
	for _, count := range counts {
		if count < 800 || count > 1200 {
			t.Fatalf("a node has %d of 46,000 keys", count)
		}
	}
	if len(counts) != 46 {
		t.Fatalf("%d nodes have keys", len(counts))
	}
}

func TestProcessesShareTheFill(t *testing.T) {
	s, total := newStore([]string{memcached(t)}), 0
	for rank := range 3 {
		count, err := fill(s, rank, 3, 1, 4)
		if err != nil {
			t.Fatal(err)
		}
		total += count
	}
	if total != 30*29+4 {
		t.Fatal(total)
	}
	for _, key := range []string{flightsKey("ZRH", "AMS", 1), customerKey("user3")} {
		if stored, err := s.get(key); err != nil || stored == nil {
			t.Fatal(key, err)
		}
	}
}

func TestBucketsOfTimes(t *testing.T) {
	for microseconds := uint64(0); microseconds < 1<<40; microseconds += 1 + microseconds/7 {
		largest := largestOf(bucketOf(microseconds))
		if largest < microseconds || largest > microseconds+microseconds/32 {
			t.Fatalf("%d is in the bucket up to %d", microseconds, largest)
		}
	}
	counters := &counters{}
	counters.count(100*time.Microsecond, 200)
	counters.count(time.Second, 503)
	body, _ := json.Marshal(counters)
	if string(body) != `{"errors":1,"times":{"101":1}}` {
		t.Fatal(string(body))
	}
}

func TestRosterByRank(t *testing.T) {
	nodes := []node{{"data", 1, "10.0.0.2"}, {"web", 0, "10.0.0.9"}, {"data", 0, "10.0.0.3"}}
	if got := fmt.Sprint(addresses(nodes, "data", 7211)); got != "[10.0.0.3:7211 10.0.0.2:7211]" {
		t.Fatal(got)
	}
}
