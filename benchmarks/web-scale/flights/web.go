package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"sync/atomic"
	"time"
)

const (
	cookieName     = "flights_session"
	mostBookings   = 10 // of a customer: a further one replaces the oldest
	tries          = 20 // at a customer's bookings, while other requests change them, too
	bookedLifetime = 24 * time.Hour
	callTimeout    = 10 * time.Second
)

var (
	errAuthentication = errors.New("authentication service")
	userPattern       = regexp.MustCompile(`^user[0-9]{1,9}$`)
	flightPattern     = regexp.MustCompile(`^([A-Z]{3})-([A-Z]{3})-([0-9]{1,3})-[0-9]{1,2}$`)
	placePattern      = regexp.MustCompile(`^[A-Z]{3}$`)
)

// A web server: sessions are in the authentication service, everything else is in the store.
//
//	POST   /session            logs in: form fields user and password
//	DELETE /session            logs out
//	GET    /flights            from, to, day and back: flights of both days
//	POST   /bookings           books: form field flight
//	GET    /bookings           lists the customer's bookings
//	DELETE /bookings/BOOKING   cancels a booking
//
// 401: no session; 404: no such thing; 500: the data tier failed; 503: the authentication service failed.
type web struct {
	store  *store
	client *http.Client
	peers  []string
	turn   atomic.Uint64
}

type booking struct {
	ID     string `json:"booking"`
	Flight flight `json:"flight"`
}

func webHandler(s *store, authentication []string) http.Handler {
	dialer := &net.Dialer{Timeout: callTimeout}
	transport := &http.Transport{
		DialContext: dialer.DialContext, MaxIdleConnsPerHost: idlePerServer, DisableCompression: true, IdleConnTimeout: time.Minute,
	}
	w := &web{store: s, client: &http.Client{Transport: transport, Timeout: callTimeout}, peers: authentication}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /session", w.logIn)
	mux.HandleFunc("DELETE /session", w.logOut)
	mux.HandleFunc("GET /flights", w.authenticated(w.queryFlights))
	mux.HandleFunc("POST /bookings", w.authenticated(w.book))
	mux.HandleFunc("GET /bookings", w.authenticated(w.listBookings))
	mux.HandleFunc("DELETE /bookings/{booking}", w.authenticated(w.cancel))
	return mux
}

// call asks the next authentication service. It returns nil if there is no such session.
func (s *web) call(ctx context.Context, method, path string) (*session, error) {
	peer := s.peers[s.turn.Add(1)%uint64(len(s.peers))]
	request, err := http.NewRequestWithContext(ctx, method, "http://"+peer+path, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errAuthentication, err)
	}
	response, err := s.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errAuthentication, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %s: %w", errAuthentication, peer, err)
	case response.StatusCode == http.StatusNotFound:
		return nil, nil
	case response.StatusCode == http.StatusInternalServerError:
		return nil, fmt.Errorf("%w: %s", errStore, body)
	case response.StatusCode >= http.StatusMultipleChoices:
		return nil, fmt.Errorf("%w: %s: %s", errAuthentication, peer, response.Status)
	}
	result := &session{}
	if err := json.Unmarshal(body, result); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", errAuthentication, peer, err)
	}
	return result, nil
}

func (s *web) authenticated(handle func(http.ResponseWriter, *http.Request, string)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if found := s.sessionOf(w, r, http.MethodGet); found != nil {
			handle(w, r, found.User)
		}
	}
}

// sessionOf asks the authentication service for the session of a request. Without one it answers the request, and returns nil.
func (s *web) sessionOf(w http.ResponseWriter, r *http.Request, method string) *session {
	cookie, err := r.Cookie(cookieName)
	if err != nil || !isToken(cookie.Value) {
		answer(w, http.StatusUnauthorized, problem{"log in first"})
		return nil
	}
	found, err := s.call(r.Context(), method, "/sessions/"+cookie.Value)
	if err != nil {
		fail(w, err)
	} else if found == nil {
		answer(w, http.StatusUnauthorized, problem{"the session is over"})
	}
	return found
}

func (s *web) logIn(w http.ResponseWriter, r *http.Request) {
	user, password := r.PostFormValue("user"), r.PostFormValue("password")
	known := &customer{}
	if !userPattern.MatchString(user) {
		answer(w, http.StatusUnauthorized, problem{"wrong user or password"})
		return
	}
	if err := s.read(customerKey(user), known); err != nil {
		fail(w, err)
		return
	}
	if known.Password != digest(user, password) {
		answer(w, http.StatusUnauthorized, problem{"wrong user or password"})
		return
	}
	created, err := s.call(r.Context(), http.MethodPost, "/sessions?user="+url.QueryEscape(user))
	if err == nil && created == nil {
		err = fmt.Errorf("%w: no session was created", errAuthentication)
	}
	if err != nil {
		fail(w, err)
		return
	}
	http.SetCookie(w, &http.Cookie{Name: cookieName, Value: created.Token, Path: "/", HttpOnly: true})
	answer(w, http.StatusOK, map[string]any{"user": user, "miles": known.Miles})
}

func (s *web) logOut(w http.ResponseWriter, r *http.Request) {
	if ended := s.sessionOf(w, r, http.MethodDelete); ended != nil {
		http.SetCookie(w, &http.Cookie{Name: cookieName, Path: "/", MaxAge: -1})
		answer(w, http.StatusOK, map[string]any{"user": ended.User})
	}
}

func (s *web) queryFlights(w http.ResponseWriter, r *http.Request, _ string) {
	query := r.URL.Query()
	from, to := query.Get("from"), query.Get("to")
	day, dayErr := strconv.Atoi(query.Get("day"))
	back, backErr := strconv.Atoi(query.Get("back"))
	if dayErr != nil || backErr != nil || !placePattern.MatchString(from) || !placePattern.MatchString(to) {
		answer(w, http.StatusBadRequest, problem{"from and to must be airports, day and back numbers"})
		return
	}
	var out, home json.RawMessage
	err := s.read(flightsKey(from, to, day), &out)
	if err == nil {
		err = s.read(flightsKey(to, from, back), &home)
	}
	if err != nil {
		fail(w, err)
		return
	}
	answer(w, http.StatusOK, map[string]any{"out": out, "back": home})
}

func (s *web) book(w http.ResponseWriter, r *http.Request, user string) {
	id := r.PostFormValue("flight")
	parts := flightPattern.FindStringSubmatch(id)
	if parts == nil {
		answer(w, http.StatusBadRequest, problem{"flight must be the id of a flight"})
		return
	}
	day, _ := strconv.Atoi(parts[3])
	var flights []flight
	if err := s.read(flightsKey(parts[1], parts[2], day), &flights); err != nil {
		fail(w, err)
		return
	}
	n := slices.IndexFunc(flights, func(one flight) bool { return one.ID == id })
	if n < 0 {
		fail(w, errMissing)
		return
	}
	created := booking{Flight: flights[n]}
	err := s.change(user, func(bookings []booking) ([]booking, error) {
		created.ID = fmt.Sprintf("%s.%d", id, time.Now().UnixMicro())
		bookings = append(bookings, created)
		return bookings[max(0, len(bookings)-mostBookings):], nil
	})
	if err != nil {
		fail(w, err)
		return
	}
	answer(w, http.StatusCreated, created)
}

func (s *web) listBookings(w http.ResponseWriter, r *http.Request, user string) {
	bookings := []booking{}
	if err := s.read(bookingsKey(user), &bookings); err != nil && !errors.Is(err, errMissing) {
		fail(w, err)
		return
	}
	answer(w, http.StatusOK, map[string]any{"bookings": bookings})
}

func (s *web) cancel(w http.ResponseWriter, r *http.Request, user string) {
	id := r.PathValue("booking")
	err := s.change(user, func(bookings []booking) ([]booking, error) {
		n := slices.IndexFunc(bookings, func(one booking) bool { return one.ID == id })
		if n < 0 {
			return nil, errMissing
		}
		return slices.Delete(bookings, n, n+1), nil
	})
	if err != nil {
		fail(w, err)
		return
	}
	answer(w, http.StatusOK, map[string]any{"canceled": id})
}

var (
	errMissing = errors.New("no such thing")
	errBusy    = errors.New("other requests changed the bookings again and again")
)

func (s *web) read(key string, document any) error {
	stored, err := s.store.get(key)
	if err != nil {
		return err
	}
	if stored == nil {
		return fmt.Errorf("%w: %s", errMissing, key)
	}
	return json.Unmarshal(stored.body, document)
}

// change replaces the bookings of a customer. It repeats the change if another request came first, so no change is lost.
func (s *web) change(user string, edit func([]booking) ([]booking, error)) error {
	for range tries {
		stored, err := s.store.get(bookingsKey(user))
		if err != nil {
			return err
		}
		var bookings []booking
		if stored != nil {
			if err := json.Unmarshal(stored.body, &bookings); err != nil {
				return err
			}
		}
		if bookings, err = edit(bookings); err != nil {
			return err
		}
		body, err := json.Marshal(bookings)
		if err != nil {
			return err
		}
		replaced, err := s.store.replace(bookingsKey(user), body, bookedLifetime, stored)
		if err != nil || replaced {
			return err
		}
	}
	return errBusy
}

func fail(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	switch {
	case errors.Is(err, errMissing):
		status = http.StatusNotFound
	case errors.Is(err, errBusy):
		status = http.StatusConflict
	case errors.Is(err, errAuthentication):
		status = http.StatusServiceUnavailable
	}
	answer(w, status, problem{err.Error()})
}
