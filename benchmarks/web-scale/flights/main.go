// Command flights is an airline's application for load tests. One program has both services:
//
//	flights web --roster FILE --listen ADDRESS:PORT             the web tier
//	flights authentication --roster FILE --listen ADDRESS:PORT  sessions, which each web request validates
//	flights fill --roster FILE --rank N                         writes flights and customers to the data tier, as one of the web nodes
//
// The roster names all nodes: {"nodes": [{"role", "rank", "address"}]}. Nodes of the role data run memcached.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"time"
)

// Options of all commands.
type options struct {
	roster, listen               string
	rank, days, customers        int
	dataPort, authenticationPort int
}

type node struct {
	Role    string `json:"role"`
	Rank    int    `json:"rank"`
	Address string `json:"address"`
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "flights:", err)
		os.Exit(1)
	}
}

func run(words []string) error {
	if len(words) == 0 {
		return errors.New("usage: flights web|authentication|fill --roster FILE ...")
	}
	o := options{}
	flags := flag.NewFlagSet(words[0], flag.ContinueOnError)
	flags.StringVar(&o.roster, "roster", "", "JSON file of all nodes")
	flags.StringVar(&o.listen, "listen", "", "address and port of the service")
	flags.IntVar(&o.dataPort, "data-port", 7211, "port of memcached")
	flags.IntVar(&o.authenticationPort, "authentication-port", 7082, "port of the authentication service")
	flags.IntVar(&o.rank, "rank", 0, "fill: this node among those of the role web")
	flags.IntVar(&o.days, "days", 30, "fill: days with flights")
	flags.IntVar(&o.customers, "customers", 10000, "fill: customers who can log in")
	if err := flags.Parse(words[1:]); err != nil {
		return err
	}
	nodes, err := readRoster(o.roster)
	if err != nil {
		return err
	}
	data := addresses(nodes, "data", o.dataPort)
	if len(data) == 0 {
		return errors.New("the roster has no node of the role data")
	}
	s := newStore(data)
	switch words[0] {
	case "fill":
		started := time.Now()
		count, err := fill(s, o.rank, max(1, len(addresses(nodes, "web", 0))), o.days, o.customers)
		fmt.Printf("%d values to %d nodes in %.1f s\n", count, len(data), time.Since(started).Seconds())
		return err
	case "authentication":
		return serve(o.listen, counted("validate", authenticationHandler(s)))
	case "web":
		services := addresses(nodes, "authentication", o.authenticationPort)
		if len(services) == 0 {
			return errors.New("the roster has no node of the role authentication")
		}
		return serve(o.listen, counted("request", webHandler(s, services)))
	}
	return fmt.Errorf("there is no command %q", words[0])
}

func readRoster(path string) ([]node, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var roster struct{ Nodes []node }
	if err := json.Unmarshal(content, &roster); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return roster.Nodes, nil
}

// addresses returns the nodes of a role by rank, so all processes have them in the same order.
func addresses(nodes []node, role string, port int) []string {
	chosen := slices.DeleteFunc(slices.Clone(nodes), func(one node) bool { return one.Role != role })
	slices.SortFunc(chosen, func(a, b node) int { return a.Rank - b.Rank })
	result := make([]string, len(chosen))
	for n, one := range chosen {
		result[n] = net.JoinHostPort(one.Address, strconv.Itoa(port))
	}
	return result
}

func serve(address string, handler http.Handler) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	fmt.Printf("serving at %s\n", listener.Addr())
	service := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute, IdleTimeout: 10 * time.Minute}
	return service.Serve(listener)
}
