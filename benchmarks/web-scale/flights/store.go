package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

const (
	storeTimeout  = 5 * time.Second
	idlePerServer = 512
	longestValue  = 1 << 20
)

// errStore wraps each failure of the data tier.
var errStore = errors.New("data tier")

// A store keeps values in memcached. A hash of the key chooses the node, so all processes agree on it.
type store struct {
	servers []*server
}

type server struct {
	address string
	idle    chan *connection
}

type connection struct {
	net.Conn
	reader *bufio.Reader
}

// A value of the store. Its version changes with each write.
type value struct {
	body    []byte
	version uint64
}

func newStore(addresses []string) *store {
	result := &store{}
	for _, address := range addresses {
		result.servers = append(result.servers, &server{address, make(chan *connection, idlePerServer)})
	}
	return result
}

func (s *store) serverOf(key string) *server {
	hash := fnv.New64a()
	io.WriteString(hash, key)
	sum := hash.Sum64()
	return s.servers[(sum^sum>>32)%uint64(len(s.servers))]
}

// get returns nil if there is no such key.
func (s *store) get(key string) (*value, error) {
	var result *value
	err := s.ask(key, func(c *connection) error {
		if _, err := io.WriteString(c, "gets "+key+"\r\n"); err != nil {
			return err
		}
		line, err := c.line()
		if err != nil || line == "END" {
			return err
		}
		words := strings.Fields(line)
		if len(words) != 5 || words[0] != "VALUE" {
			return fmt.Errorf("unexpected answer %q", line)
		}
		length, err := strconv.Atoi(words[3])
		if err != nil || length < 0 || length > longestValue {
			return fmt.Errorf("unexpected length %q", words[3])
		}
		version, err := strconv.ParseUint(words[4], 10, 64)
		if err != nil {
			return err
		}
		body := make([]byte, length+2)
		if _, err := io.ReadFull(c.reader, body); err != nil {
			return err
		}
		if line, err = c.line(); err != nil || line != "END" {
			return fmt.Errorf("unexpected answer %q: %w", line, err)
		}
		result = &value{body[:length], version}
		return nil
	})
	return result, err
}

// set writes a value, whatever there was before.
func (s *store) set(key string, body []byte, lifetime time.Duration) error {
	stored, err := s.write("set", key, body, lifetime, "")
	if err == nil && !stored {
		err = fmt.Errorf("%w: %s was not stored", errStore, key)
	}
	return err
}

// replace writes a value if the key still has the version of old, or still does not exist if old is nil.
func (s *store) replace(key string, body []byte, lifetime time.Duration, old *value) (bool, error) {
	if old == nil {
		return s.write("add", key, body, lifetime, "")
	}
	return s.write("cas", key, body, lifetime, " "+strconv.FormatUint(old.version, 10))
}

func (s *store) write(verb, key string, body []byte, lifetime time.Duration, version string) (bool, error) {
	var request bytes.Buffer
	fmt.Fprintf(&request, "%s %s 0 %d %d%s\r\n", verb, key, int(lifetime.Seconds()), len(body), version)
	request.Write(body)
	request.WriteString("\r\n")
	stored := false
	err := s.ask(key, func(c *connection) error {
		if _, err := c.Write(request.Bytes()); err != nil {
			return err
		}
		line, err := c.line()
		switch {
		case err != nil:
			return err
		case line == "STORED":
			stored = true
		case line != "NOT_STORED" && line != "EXISTS" && line != "NOT_FOUND":
			return fmt.Errorf("unexpected answer %q", line)
		}
		return nil
	})
	return stored, err
}

// remove deletes a key and returns whether it existed.
func (s *store) remove(key string) (bool, error) {
	removed := false
	err := s.ask(key, func(c *connection) error {
		if _, err := io.WriteString(c, "delete "+key+"\r\n"); err != nil {
			return err
		}
		line, err := c.line()
		if err == nil && line != "DELETED" && line != "NOT_FOUND" {
			err = fmt.Errorf("unexpected answer %q", line)
		}
		removed = line == "DELETED"
		return err
	})
	return removed, err
}

// ask lends a connection to the key's node. After any failure the connection is closed, because its answers may be out of step.
func (s *store) ask(key string, exchange func(*connection) error) error {
	server := s.serverOf(key)
	c, err := server.connect()
	if err != nil {
		return fmt.Errorf("%w: %w", errStore, err)
	}
	c.SetDeadline(time.Now().Add(storeTimeout))
	if err := exchange(c); err != nil {
		c.Close()
		return fmt.Errorf("%w: %s: %w", errStore, server.address, err)
	}
	select {
	case server.idle <- c:
	default:
		c.Close()
	}
	return nil
}

func (s *server) connect() (*connection, error) {
	select {
	case c := <-s.idle:
		return c, nil
	default:
	}
	c, err := net.DialTimeout("tcp", s.address, storeTimeout)
	if err != nil {
		return nil, err
	}
	return &connection{c, bufio.NewReaderSize(c, 4096)}, nil
}

func (c *connection) line() (string, error) {
	line, err := c.reader.ReadSlice('\n')
	if err != nil {
		return "", err
	}
	return string(bytes.TrimRight(line, "\r\n")), nil
}
