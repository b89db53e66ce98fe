package main

import (
	"crypto/rand"
	"net/http"
	"time"
)

const sessionLifetime = time.Hour

// authenticationHandler serves sessions: each request of the web tier calls it.
//
//	POST   /sessions?user=U  creates a session and returns its token
//	GET    /sessions/TOKEN   returns the session's user; 404 if it does not exist
//	DELETE /sessions/TOKEN   ends the session and returns its user
func authenticationHandler(s *store) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /sessions", func(w http.ResponseWriter, r *http.Request) {
		user, token := r.URL.Query().Get("user"), rand.Text()
		if err := s.set(sessionKey(token), []byte(user), sessionLifetime); err != nil {
			answer(w, http.StatusInternalServerError, problem{err.Error()})
			return
		}
		answer(w, http.StatusCreated, session{token, user})
	})
	mux.HandleFunc("GET /sessions/{token}", func(w http.ResponseWriter, r *http.Request) {
		lookUp(w, s, r.PathValue("token"))
	})
	mux.HandleFunc("DELETE /sessions/{token}", func(w http.ResponseWriter, r *http.Request) {
		token := r.PathValue("token")
		if !lookUp(w, s, token) {
			return
		}
		s.remove(sessionKey(token))
	})
	return mux
}

type session struct {
	Token string `json:"token"`
	User  string `json:"user"`
}

type problem struct {
	Problem string `json:"problem"`
}

func lookUp(w http.ResponseWriter, s *store, token string) bool {
	if !isToken(token) {
		answer(w, http.StatusNotFound, problem{"no such session"})
		return false
	}
	user, err := s.get(sessionKey(token))
	switch {
	case err != nil:
		answer(w, http.StatusInternalServerError, problem{err.Error()})
	case user == nil:
		answer(w, http.StatusNotFound, problem{"no such session"})
	default:
		answer(w, http.StatusOK, session{token, string(user.body)})
		return true
	}
	return false
}

// isToken checks that a token is safe as a part of a key and of a path.
func isToken(token string) bool {
	if len(token) == 0 || len(token) > 64 {
		return false
	}
	for _, c := range token {
		if (c < 'A' || c > 'Z') && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}
